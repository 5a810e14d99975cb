package server

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"hubcloud/cmd/hubcloud/internal/address"
	"hubcloud/cmd/hubcloud/internal/datadir"
	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/diskspace"
)

// Config configures a replica. The tag `help` of a field documents it, and `default` is its
// default. Package cli makes a flag and an environment variable of each field, and fills in the
// defaults.
type Config struct {
	DataDir string `help:"Folder for all files that the installation keeps on this machine." default:"./data" type:"path" group:"Where"`
	HTTP    string `help:"Address of the API." default:":8080" name:"http" group:"Where"`
	Admin   string `help:"Address for metrics, health checks and profiles." default:"127.0.0.1:9090" group:"Where"`
	MQTT    string `help:"Address for hubs (MQTT over TLS)." default:":8883" name:"mqtt" group:"Where"`
	NATS    string `help:"Address of the broker for operators and analytics." default:"127.0.0.1:4222" name:"nats" group:"Where"`

	PublicURL  string `help:"URL of the API for clients, without /v1. Defaults to one made of --http." placeholder:"URL" name:"public-url" group:"Where"`
	PublicMQTT string `help:"HOST:PORT of the broker for hubs. Defaults to the host of --public-url and the port of --mqtt." placeholder:"HOST:PORT" name:"public-mqtt" group:"Where"`

	TrustedProxies []string `help:"Networks (CIDR) of the proxies in front of --http. The client address of a request from a proxy is read from X-Forwarded-For." placeholder:"CIDR" sep:"," group:"Where"`

	NATSURL         string   `help:"Use this broker instead of an embedded one." placeholder:"URL" name:"nats-url" group:"Servers of one's own"`
	NATSCredentials string   `help:"Credentials file for --nats-url." placeholder:"FILE" name:"nats-credentials" type:"path" group:"Servers of one's own"`
	PostgresURL     string   `help:"Use this database instead of a private one." placeholder:"URL" name:"postgres-url" group:"Servers of one's own"`
	Roles           []string `help:"Roles of this replica: api, bridge, projector." default:"api,bridge,projector" sep:"," group:"Servers of one's own"`
	CACert          string   `help:"Certificate (PEM) of the authority that signs the certificates of the broker and the hubs. By default the service creates an authority." placeholder:"FILE" name:"ca-cert" type:"path" group:"Servers of one's own"`
	CAKey           string   `help:"Key (PEM) of --ca-cert." placeholder:"FILE" name:"ca-key" type:"path" group:"Servers of one's own"`
	CAAlso          string   `help:"Certificates (PEM) of further authorities that the broker and hubs trust, for the time in which one authority replaces another." placeholder:"FILE" name:"ca-also" type:"path" group:"Servers of one's own"`

	StartTimeout time.Duration `help:"How long a start waits for the broker, its streams and the database. The start retries until then, and fails after it." default:"5m" group:"Servers of one's own"`

	SMTPURL  string `help:"Mail server: smtp://USER:PASSWORD@HOST:PORT requires STARTTLS (except on this machine, or with ?tls=optional), smtps://… uses TLS. By default mails are written to outbox/ in --data-dir." placeholder:"URL" name:"smtp-url" group:"Mail"`
	MailFrom string `help:"Sender of mails, such as hubs@example.org or \"Hubs <hubs@example.org>\". Defaults to no-reply at the host of --public-url." placeholder:"ADDRESS" name:"mail-from" group:"Mail"`

	Shards      int    `help:"Number of broker accounts that hold the hub logs, 1 to 256, fixed when the installation is created. Use 16 for up to 50,000 hubs, 64 for more. 0 keeps the number of the installation; a new one gets 16." default:"0" group:"Storage"`
	LogReplicas int    `help:"Copies of each stream in a cluster: 1 or 3." default:"1" group:"Storage"`
	Sync        string `help:"When a write is synced to disk: \"always\", before it is acknowledged, survives a power cut; an interval such as 2m is faster and survives only a crash of the process." default:"always" group:"Storage"`

	DiskReserve string `help:"Space to keep free on the disk of --data-dir, such as 5%, 1GiB, or both (the smaller counts); 0 for none. With less free space the service stores no hub events, changes or commands, but still answers reads. Ignored with --nats-url." default:"5%,1GiB" group:"Storage"`

	OpenSignUp            bool          `help:"Let everyone with an e-mail address sign in to the portal and create an organization." name:"open-signup" group:"Portal"`
	Environment           string        `help:"Environment of the API keys: live or dev. It is fixed when the installation is created." default:"${environment}" enum:"live,dev" group:"Where"`
	EventRetention        time.Duration `help:"How long hub events are kept." default:"24h" group:"Limits"`
	StreamLifetime        time.Duration `help:"Longest duration of an event stream." default:"15m" group:"Limits"`
	StreamKeepalive       time.Duration `help:"Interval of keepalives on an event stream." default:"30s" group:"Limits"`
	HubTimeout            time.Duration `help:"How long to wait for a hub's response." default:"10s" group:"Limits"`
	Rate                  int           `help:"Requests per second for each API key." default:"50" group:"Limits"`
	Burst                 int           `help:"Burst of requests for each API key." default:"100" group:"Limits"`
	StreamsPerKey         int           `help:"Concurrent event streams and event reads of one API key." default:"5000" group:"Limits"`
	Calls                 int           `help:"Concurrent commands and live calls at one replica. One organization gets at most half of what the others leave." default:"16384" group:"Limits"`
	CallsPerOrg           int           `help:"Concurrent commands and live calls of one organization at one replica." default:"2048" group:"Limits"`
	CallsPerHub           int           `help:"Concurrent commands and live calls to one hub at one replica." default:"256" group:"Limits"`
	CommandsPerOrg        int           `help:"Commands of one organization per hour at one replica. Each command leaves two records in its hub's log." default:"200000" group:"Limits"`
	Connections           int           `help:"Connections of API clients. 0 means a quarter of the process's limit of open files." default:"0" group:"Limits"`
	ConnectionsPerAddress int           `help:"Connections of API clients from one address (or IPv6 /64) outside --trusted-proxies. 0 means half of --connections." default:"0" name:"connections-per-address" group:"Limits"`
	BrokerConnections     int           `help:"Connections to the embedded broker, mostly of hubs. 0 means three eighths of the process's limit of open files." default:"0" group:"Limits"`
	IdempotencyWindow     time.Duration `help:"How long the response to a request with an Idempotency-Key is kept." default:"24h" group:"Limits"`
	IdempotencyKeysPerOrg int           `help:"Idempotency-Keys of one organization per --idempotency-window." default:"500000" group:"Limits"`
	SitesPerOrg           int           `help:"Sites of one organization." default:"10000" group:"Limits"`
	KeysPerOrg            int           `help:"API keys of one organization that are not revoked. Operators may create more." default:"100" group:"Limits"`
	MembersPerOrg         int           `help:"Members of one organization." default:"1000" group:"Limits"`
	OrgsPerAccount        int           `help:"Organizations that one person may own with --open-signup. Operators may create more." default:"20" name:"orgs-per-account" group:"Limits"`
	ChangesPerOrg         int           `help:"Changes of sites, hubs, names, keys and roles in one organization per hour at one replica." default:"20000" group:"Limits"`
	InvitationTTL         time.Duration `help:"How long an invitation is valid." default:"168h" name:"invitation-ttl" group:"Limits"`
	PairingWindow         time.Duration `help:"How long a virtual hub's pairing window stays open." default:"120s" group:"Limits"`

	HubResets          int `help:"Resets of one hub per minute that start a new event log. A hub that is reset more often must wait." default:"4" group:"Limits"`
	HubResetBurst      int `help:"Burst of resets of one hub that start a new event log, at most 64." default:"20" group:"Limits"`
	HubEnrolments      int `help:"Certificates issued to one hub per minute." default:"4" group:"Limits"`
	HubEnrolmentBurst  int `help:"Burst of certificates issued to one hub, at most 64." default:"20" group:"Limits"`
	HubConnections     int `help:"New connections of one hub to the broker per minute." default:"60" group:"Limits"`
	HubConnectionBurst int `help:"Burst of new connections of one hub to the broker." default:"60" group:"Limits"`

	InvitationsPerOrg        int `help:"Invitations of one organization per hour, at most 1000." default:"100" group:"Limits"`
	PendingInvitationsPerOrg int `help:"Pending invitations of one organization." default:"1000" group:"Limits"`
	InvitationsPerAddress    int `help:"Invitations to one address per hour, from all organizations. One organization may send half of them." default:"10" group:"Limits"`
	WaitingMailsPerOrg       int `help:"Mails of one organization that wait for the mail server." default:"200" group:"Limits"`
	SignInLinksPerAddress    int `help:"Sign-in links requested for one address per hour, half of them at once." default:"10" group:"Limits"`
	SignInLinksPerNetwork    int `help:"Sign-in links requested from one network per hour at one replica." default:"20" group:"Limits"`

	HistoryCache       int64 `help:"Memory for the cache of event history, in MiB." default:"128" group:"Memory"`
	LiveCache          int64 `help:"Memory for the cache of the newest events, in MiB." default:"128" group:"Memory"`
	AnswerMemory       int64 `help:"Memory for responses that clients have not received yet, in MiB. One organization uses at most half." default:"32" group:"Memory"`
	AnswerMemoryPerKey int64 `help:"Memory for responses that clients of one API key have not received yet, in MiB." default:"8" name:"answer-memory-per-key" group:"Memory"`

	// FetchPostgres downloads PostgreSQL when it is not installed. It has no flag: only the command
	// dev sets it.
	FetchPostgres bool `kong:"-"`
}

// The roles of a replica.
const (
	roleAPI       = "api"
	roleBridge    = "bridge"
	roleProjector = "projector"
)

var allRoles = []string{roleAPI, roleBridge, roleProjector}

// Dir returns the data directory.
func (c Config) Dir() datadir.Dir { return datadir.Dir(c.DataDir) }

func (c Config) has(role string) bool { return slices.Contains(c.Roles, role) }

// Validate checks all fields. Errors name the flag and what it allows.
func (c Config) Validate() error {
	for _, validate := range []func() error{
		c.validateAddresses, c.validateRoles, c.validateServers, c.validateStorage,
		c.validateMail, c.validateLimits,
	} {
		if err := validate(); err != nil {
			return err
		}
	}
	return nil
}

func (c Config) validateAddresses() error {
	for name, bound := range map[string]string{
		"http": c.HTTP, "admin": c.Admin, "mqtt": c.MQTT, "nats": c.NATS,
	} {
		if address.Check(bound) != nil {
			return fmt.Errorf(
				"--%s %q: must be HOST:PORT or :PORT, where port 0 picks a free one", name, bound,
			)
		}
	}
	if c.PublicURL != "" {
		u, err := url.Parse(c.PublicURL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return fmt.Errorf("--public-url %q: must be http://… or https://…", c.PublicURL)
		}
	}
	if c.PublicMQTT != "" && address.Check(c.PublicMQTT) != nil {
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

// validateServers checks the fields about servers that the operator runs.
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
	if _, err := diskspace.ParseReserve(c.DiskReserve); err != nil {
		return fmt.Errorf("--disk-reserve %w", err)
	}
	return nil
}

func (c Config) validateLimits() error {
	for name, d := range map[string]time.Duration{
		"event-retention": c.EventRetention, "stream-lifetime": c.StreamLifetime,
		"stream-keepalive": c.StreamKeepalive, "hub-timeout": c.HubTimeout,
		"idempotency-window": c.IdempotencyWindow, "invitation-ttl": c.InvitationTTL,
		"pairing-window": c.PairingWindow, "start-timeout": c.StartTimeout,
	} {
		if d < 100*time.Millisecond {
			return fmt.Errorf("--%s %s: must be at least 100ms", name, d)
		}
	}
	for name, n := range map[string]int64{
		"rate": int64(c.Rate), "burst": int64(c.Burst), "streams-per-key": int64(c.StreamsPerKey),
		"calls": int64(c.Calls), "calls-per-org": int64(c.CallsPerOrg),
		"calls-per-hub": int64(c.CallsPerHub), "commands-per-org": int64(c.CommandsPerOrg),
		"idempotency-keys-per-org": int64(c.IdempotencyKeysPerOrg),
		"sites-per-org":            int64(c.SitesPerOrg), "keys-per-org": int64(c.KeysPerOrg),
		"orgs-per-account": int64(c.OrgsPerAccount), "members-per-org": int64(c.MembersPerOrg),
		"changes-per-org":             int64(c.ChangesPerOrg),
		"invitations-per-org":         int64(c.InvitationsPerOrg),
		"pending-invitations-per-org": int64(c.PendingInvitationsPerOrg),
		"invitations-per-address":     int64(c.InvitationsPerAddress),
		"waiting-mails-per-org":       int64(c.WaitingMailsPerOrg),
		"sign-in-links-per-address":   int64(c.SignInLinksPerAddress),
		"sign-in-links-per-network":   int64(c.SignInLinksPerNetwork),
		"history-cache":               c.HistoryCache, "live-cache": c.LiveCache,
		"hub-resets": int64(c.HubResets), "hub-reset-burst": int64(c.HubResetBurst),
		"hub-enrolments":       int64(c.HubEnrolments),
		"hub-enrolment-burst":  int64(c.HubEnrolmentBurst),
		"hub-connections":      int64(c.HubConnections),
		"hub-connection-burst": int64(c.HubConnectionBurst),
		"answer-memory":        c.AnswerMemory, "answer-memory-per-key": c.AnswerMemoryPerKey,
	} {
		if n < 1 {
			return fmt.Errorf("--%s %d: must be at least 1", name, n)
		}
	}
	for name, limit := range map[string]struct{ n, most int }{
		"hub-reset-burst":     {c.HubResetBurst, domain.MaxHubBurst},
		"hub-enrolment-burst": {c.HubEnrolmentBurst, domain.MaxHubBurst},
		"invitations-per-org": {c.InvitationsPerOrg, domain.MaxInvitationsPerHour},
	} {
		if limit.n > limit.most {
			return fmt.Errorf("--%s %d: must be at most %d", name, limit.n, limit.most)
		}
	}
	for name, n := range map[string]int{
		"connections": c.Connections, "connections-per-address": c.ConnectionsPerAddress,
		"broker-connections": c.BrokerConnections,
	} {
		if n < 0 {
			return fmt.Errorf(
				"--%s %d: must be at least 1, or 0 for a part of the limit of open files", name, n,
			)
		}
	}
	if c.AnswerMemoryPerKey > c.AnswerMemory {
		return fmt.Errorf(
			"--answer-memory-per-key %d: must be at most --answer-memory, which is %d",
			c.AnswerMemoryPerKey, c.AnswerMemory,
		)
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
