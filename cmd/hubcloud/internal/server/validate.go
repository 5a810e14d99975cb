package server

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"hubcloud/cmd/hubcloud/internal/installation"
	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/disk"
)

// Validate checks all fields. Errors name the flag and what it allows.
func (c Config) Validate() error {
	for _, validate := range []func() error{
		c.validateAddresses, c.validateHTTPS, c.validateRoles, c.validateServers, c.validateStorage,
		c.validateMail, c.validateSignIn, c.validateLimits,
	} {
		if err := validate(); err != nil {
			return err
		}
	}
	return nil
}

func (c Config) validateAddresses() error {
	for _, f := range []struct{ name, address string }{
		{"http", c.HTTP}, {"admin", c.Admin}, {"mqtt", c.MQTT}, {"nats", c.NATS},
	} {
		if installation.CheckAddress(f.address) != nil {
			return fmt.Errorf(
				"--%s %q: must be HOST:PORT or :PORT, where port 0 picks a free one",
				f.name, f.address,
			)
		}
	}
	if c.PublicURL != "" {
		u, err := url.Parse(c.PublicURL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return fmt.Errorf("--public-url %q: must be http://… or https://…", c.PublicURL)
		}
	}
	if c.PublicMQTT != "" && installation.CheckAddress(c.PublicMQTT) != nil {
		return fmt.Errorf("--public-mqtt %q: must be HOST:PORT", c.PublicMQTT)
	}
	_, err := c.trustedProxies()
	return err
}

func (c Config) validateRoles() error {
	if len(c.Roles) == 0 {
		return errors.New("--roles: at least one of api, bridge and projector is needed")
	}
	for _, role := range c.Roles {
		if !slices.Contains(allRoles, role) {
			return fmt.Errorf("--roles: %q is none of api, bridge and projector", role)
		}
	}
	return nil
}

// validateServers checks the fields about external servers.
func (c Config) validateServers() error {
	if (c.CACert == "") != (c.CAKey == "") {
		return errors.New("--ca-cert and --ca-key need each other")
	}
	if c.PostgresURL != "" {
		if _, err := pgx.ParseConfig(c.PostgresURL); err != nil {
			// The cause may contain the password.
			return errors.New("--postgres-url: must be postgres://USER:PASSWORD@HOST/DATABASE")
		}
	}
	if c.NATSURL == "" {
		return nil
	}
	if c.NATSCredentials == "" {
		return errors.New("--nats-url needs --nats-credentials")
	}
	if !c.has(roleAPI) {
		return nil
	}
	// A replica with the role api enrols hubs: it issues certificates and sends the broker's
	// address.
	if c.CACert == "" {
		return errors.New(
			"--nats-url with the role api needs --ca-cert and --ca-key, the authority that the " +
				"broker's MQTT listener trusts",
		)
	}
	if c.PublicMQTT == "" {
		return errors.New(
			"--nats-url with the role api needs --public-mqtt, the broker's address for hubs",
		)
	}
	return nil
}

func (c Config) validateStorage() error {
	if c.LogReplicas != 1 && c.LogReplicas != 3 {
		return fmt.Errorf("--log-replicas %d: must be 1 or 3", c.LogReplicas)
	}
	if err := ValidateShards(c.Shards); err != nil {
		return err
	}
	if _, err := ParseSync(c.Sync); err != nil {
		return err
	}
	if _, err := disk.ParseReserve(c.DiskReserve); err != nil {
		return fmt.Errorf("--disk-reserve %w", err)
	}
	return nil
}

// validateLimits checks the limits in the order of the flags, so that the same configuration always
// gets the same error.
func (c Config) validateLimits() error {
	const shortest = 100 * time.Millisecond
	err := cmp.Or(
		atLeast("start-timeout", c.StartTimeout, shortest),
		atLeast("event-retention", c.EventRetention, shortest),
		atLeast("stream-lifetime", c.StreamLifetime, shortest),
		atLeast("stream-keepalive", c.StreamKeepalive, shortest),
		atLeast("hub-timeout", c.HubTimeout, shortest),
		atLeast("hub-read-interval", c.HubReadInterval, shortest),
		atLeast("idempotency-window", c.IdempotencyWindow, shortest),
		atLeast("invitation-ttl", c.InvitationTTL, shortest),
		atLeast("rate", c.Rate, 1),
		atLeast("burst", c.Burst, 1),
		atLeast("streams-per-key", c.StreamsPerKey, 1),
		atLeast("sites-per-org", c.SitesPerOrg, 1),
		atLeast("invitations-per-org", c.InvitationsPerOrg, 1),
		atLeast("invitations-per-address", c.InvitationsPerAddress, 1),
		atLeast("live-cache", c.LiveCache, 1),
	)
	if err != nil {
		return err
	}
	if c.InvitationsPerOrg > domain.MaxInvitationsPerHour {
		return fmt.Errorf(
			"--invitations-per-org %d: must be at most %d", c.InvitationsPerOrg,
			domain.MaxInvitationsPerHour,
		)
	}
	if c.Connections < 0 {
		return fmt.Errorf(
			"--connections %d: must be at least 1, or 0 for a part of the limit of open files",
			c.Connections,
		)
	}
	return nil
}

// atLeast checks the value of a flag.
func atLeast[T cmp.Ordered](flag string, value, least T) error {
	if value < least {
		return fmt.Errorf("--%s %v: must be at least %v", flag, value, least)
	}
	return nil
}

// ValidateShards checks --shards, in which 0 stands for the default.
func ValidateShards(n int) error {
	if n < 0 || n > streams.MaxShards {
		return fmt.Errorf(
			"--shards %d: must be 1 to %d, or 0 for the default", n, streams.MaxShards,
		)
	}
	return nil
}

// ParseSync parses --sync. The result 0 means that the broker syncs every write before it
// acknowledges the write.
func ParseSync(text string) (time.Duration, error) {
	if text == "always" {
		return 0, nil
	}
	interval, err := time.ParseDuration(text)
	if err != nil || interval <= 0 {
		return 0, fmt.Errorf("--sync %q: must be \"always\" or an interval such as 2m", text)
	}
	return interval, nil
}

// trustedProxies parses --trusted-proxies: networks or single addresses.
func (c Config) trustedProxies() ([]netip.Prefix, error) {
	var proxies []netip.Prefix
	for _, text := range c.TrustedProxies {
		network, err := netip.ParsePrefix(text)
		if addr, addrErr := netip.ParseAddr(text); addrErr == nil && addr.Zone() == "" {
			network, err = addr.Prefix(addr.BitLen())
		}
		if err != nil || network.Addr().Is4In6() || network != network.Masked() {
			return nil, fmt.Errorf(
				"--trusted-proxies %q: must be a network such as 10.0.0.0/8 or 2001:db8::/32, or "+
					"an address such as 192.0.2.7; all bits after a network's prefix must be 0",
				text,
			)
		}
		proxies = append(proxies, network)
	}
	return proxies, nil
}
