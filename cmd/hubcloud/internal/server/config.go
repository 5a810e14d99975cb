package server

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"hubcloud/cmd/hubcloud/internal/address"
	"hubcloud/cmd/hubcloud/internal/datadir"
	"hubcloud/domain"
	"hubcloud/streams/diskspace"
)

// Config configure the service. The limits of the contract are flags so that a test need not
// wait a day.
type Config struct {
	DataDir string `help:"Folder that holds everything this installation keeps on this machine." default:"./data" type:"path" group:"Where"`
	HTTP    string `help:"Address of the API." default:":8080" name:"http" group:"Where"`
	Admin   string `help:"Address of metrics, health and profiling." default:"127.0.0.1:9090" group:"Where"`
	MQTT    string `help:"Address that hubs connect to (MQTT over TLS)." default:":8883" name:"mqtt" group:"Where"`
	NATS    string `help:"Address of the broker for operators and analytics." default:"127.0.0.1:4222" name:"nats" group:"Where"`

	PublicURL  string `help:"Where the API is reached from outside, without /v1; made of --http when not given." placeholder:"URL" name:"public-url" group:"Where"`
	PublicMQTT string `help:"HOST:PORT under which hubs reach --mqtt; made of --public-url and --mqtt when not given." placeholder:"HOST:PORT" name:"public-mqtt" group:"Where"`

	TrustedProxies []string `help:"Networks (CIDR) of the proxies in front of --http: of a request from one, the client's address is taken from X-Forwarded-For." placeholder:"CIDR" sep:"," group:"Where"`

	NATSURL         string   `help:"Use this broker instead of an embedded one." placeholder:"URL" name:"nats-url" group:"Servers of one's own"`
	NATSCredentials string   `help:"Credentials file for --nats-url." placeholder:"FILE" name:"nats-credentials" type:"path" group:"Servers of one's own"`
	PostgresURL     string   `help:"Use this database instead of a private one." placeholder:"URL" name:"postgres-url" group:"Servers of one's own"`
	Roles           []string `help:"What this replica does: api, bridge, projector." default:"api,bridge,projector" sep:"," group:"Servers of one's own"`
	CACert          string   `help:"Certificate (PEM) of the authority that signs the broker's and the hubs' certificates; made when not given." placeholder:"FILE" name:"ca-cert" type:"path" group:"Servers of one's own"`
	CAKey           string   `help:"Its key (PEM)." placeholder:"FILE" name:"ca-key" type:"path" group:"Servers of one's own"`
	CAAlso          string   `help:"Certificates (PEM) of further authorities, while one takes the place of another: hubs are told to trust them too, and their certificates still count." placeholder:"FILE" name:"ca-also" type:"path" group:"Servers of one's own"`

	StartTimeout time.Duration `help:"How long a start waits for what others run: the broker, its streams, the database. It tries again meanwhile, and ends after that." default:"5m" group:"Servers of one's own"`

	SMTPURL  string `help:"Mail server: smtp://USER:PASSWORD@HOST:PORT needs STARTTLS (a server on this machine, or one with ?tls=optional, does not), smtps://… is TLS. Without one, mails are written to outbox/ in --data-dir." placeholder:"URL" name:"smtp-url" group:"Mail"`
	MailFrom string `help:"Sender of mails, such as hubs@example.org or \"Hubs <hubs@example.org>\"; no-reply at the host of --public-url when not given." placeholder:"ADDRESS" name:"mail-from" group:"Mail"`

	Shards      int    `help:"Accounts over which the hub logs are spread, fixed when the installation is made: 16 up to 50,000 hubs, 64 above; 0 for as many as it was made with, 16 if it is new." default:"0" group:"Storage"`
	LogReplicas int    `help:"Copies of each stream in a cluster: 1 or 3." default:"1" group:"Storage"`
	Sync        string `help:"When a write counts as stored: \"always\" survives a power cut; a time such as 2m survives only a crash of the process, and is faster." default:"always" group:"Storage"`

	DiskReserve string `help:"What must stay free on the disk of --data-dir, such as 5%, 1GiB, or both, of which the smaller counts; 0 for nothing. Below it the service stores no hub events, changes or commands, and goes on reading. Not for --nats-url." default:"5%,1GiB" group:"Storage"`

	OpenSignUp            bool          `help:"Let anybody with a mailbox sign in to the portal and create an organization." name:"open-signup" group:"Portal"`
	Environment           string        `help:"Environment of this installation's API keys: live or dev." default:"${environment}" enum:"live,dev" group:"Where"`
	EventRetention        time.Duration `help:"How long hub events are kept." default:"24h" group:"Limits"`
	StreamLifetime        time.Duration `help:"Longest life of an event stream." default:"15m" group:"Limits"`
	StreamKeepalive       time.Duration `help:"Time between two keepalives of an event stream." default:"30s" group:"Limits"`
	HubTimeout            time.Duration `help:"How long a hub may take to answer." default:"10s" group:"Limits"`
	Rate                  int           `help:"Requests a second for each API key." default:"50" group:"Limits"`
	Burst                 int           `help:"Requests at once for each API key." default:"100" group:"Limits"`
	StreamsPerKey         int           `help:"Event streams and reads of events that one API key may have open." default:"5000" group:"Limits"`
	Calls                 int           `help:"Commands and live calls that may be under way at one replica; one organization gets at most half of what the others leave." default:"16384" group:"Limits"`
	CallsPerOrg           int           `help:"Commands and live calls that one organization may have under way at one replica." default:"2048" group:"Limits"`
	CallsPerHub           int           `help:"Commands and live calls to one hub that may be under way at one replica." default:"256" group:"Limits"`
	CommandsPerOrg        int           `help:"Commands that one organization may send within an hour, at one replica; each leaves two records in its hub's log." default:"200000" group:"Limits"`
	Connections           int           `help:"Connections of API clients; 0 for a quarter of the files that the process may have open." default:"0" group:"Limits"`
	ConnectionsPerAddress int           `help:"Connections of API clients from one address (an IPv6 /64) that is not in --trusted-proxies; 0 for half of --connections." default:"0" name:"connections-per-address" group:"Limits"`
	BrokerConnections     int           `help:"Connections to the embedded broker, of hubs above all; 0 for three eighths of the files that the process may have open." default:"0" group:"Limits"`
	IdempotencyWindow     time.Duration `help:"How long the answer under an Idempotency-Key is kept." default:"24h" group:"Limits"`
	IdempotencyKeysPerOrg int           `help:"Idempotency-Keys that one organization may use within --idempotency-window." default:"500000" group:"Limits"`
	SitesPerOrg           int           `help:"Sites that one organization may have." default:"10000" group:"Limits"`
	KeysPerOrg            int           `help:"API keys that one organization may have in force; operators may create more." default:"100" group:"Limits"`
	MembersPerOrg         int           `help:"Members that one organization may have." default:"1000" group:"Limits"`
	OrgsPerAccount        int           `help:"Organizations that one person may own with --open-signup; operators may create more." default:"20" name:"orgs-per-account" group:"Limits"`
	ChangesPerOrg         int           `help:"Changes of sites, hubs, names, keys and roles that one organization may make within an hour, at one replica." default:"20000" group:"Limits"`
	InvitationTTL         time.Duration `help:"How long an invitation is valid." default:"168h" name:"invitation-ttl" group:"Limits"`
	PairingWindow         time.Duration `help:"How long a virtual hub's pairing window is open." default:"120s" group:"Limits"`

	HubResets          int `help:"Resets of one hub a minute whose new event log is taken up. A hub that is reset more often waits." default:"4" group:"Limits"`
	HubResetBurst      int `help:"Resets of one hub at once whose new event log is taken up, 64 at most." default:"20" group:"Limits"`
	HubEnrolments      int `help:"Certificates that one hub is issued a minute." default:"4" group:"Limits"`
	HubEnrolmentBurst  int `help:"Certificates that one hub is issued at once, 64 at most." default:"20" group:"Limits"`
	HubConnections     int `help:"Connections of one hub to the broker a minute." default:"60" group:"Limits"`
	HubConnectionBurst int `help:"Connections of one hub to the broker at once." default:"60" group:"Limits"`

	InvitationsPerOrg        int `help:"Invitations that one organization may make within an hour, 1000 at most." default:"100" group:"Limits"`
	PendingInvitationsPerOrg int `help:"Invitations of one organization that may be pending." default:"1000" group:"Limits"`
	InvitationsPerAddress    int `help:"Invitations that one address may get within an hour from all organizations; one organization may make half of them." default:"10" group:"Limits"`
	WaitingMailsPerOrg       int `help:"Mails of one organization that may wait for the mail server." default:"200" group:"Limits"`
	SignInLinksPerAddress    int `help:"Links to sign in that may be asked for with one address within an hour; half of them at once." default:"10" group:"Limits"`
	SignInLinksPerNetwork    int `help:"Links to sign in that may be asked for from one network within an hour, at one replica." default:"20" group:"Limits"`

	HistoryCache       int64 `help:"Memory for event history that readers share, in MiB." default:"128" group:"Memory"`
	LiveCache          int64 `help:"Memory for the newest events that readers share, in MiB." default:"128" group:"Memory"`
	AnswerMemory       int64 `help:"Memory for answers on their way to clients, in MiB; no organization has more than half." default:"32" group:"Memory"`
	AnswerMemoryPerKey int64 `help:"Memory for answers on their way to clients of one API key, in MiB." default:"8" name:"answer-memory-per-key" group:"Memory"`

	// FetchPostgres has PostgreSQL downloaded where it is not installed. It is no flag: dev does
	// so, and nothing else.
	FetchPostgres bool `kong:"-"`
}

// roles of a replica.
const (
	roleAPI       = "api"
	roleBridge    = "bridge"
	roleProjector = "projector"
)

// Dir returns the data directory.
func (f Config) Dir() datadir.Dir { return datadir.Dir(f.DataDir) }

func (f Config) has(role string) bool { return slices.Contains(f.Roles, role) }

// Validate checks what the flags say together; kong calls it once they are parsed.
func (f Config) Validate() error {
	for name, bound := range map[string]string{
		"http": f.HTTP, "admin": f.Admin, "mqtt": f.MQTT, "nats": f.NATS,
	} {
		if address.Check(bound) != nil {
			return fmt.Errorf(
				"--%s %q: an address is HOST:PORT or :PORT, and port 0 picks a free one", name,
				bound,
			)
		}
	}
	if len(f.Roles) == 0 {
		return fmt.Errorf("--roles: a replica does one thing at least: api, bridge, projector")
	}
	for _, role := range f.Roles {
		if !slices.Contains([]string{roleAPI, roleBridge, roleProjector}, role) {
			return fmt.Errorf("--roles: %q is none; roles are api, bridge and projector", role)
		}
	}
	if f.PublicURL != "" {
		if u, err := url.Parse(f.PublicURL); err != nil ||
			(u.Scheme != "http" && u.Scheme != "https") ||
			u.Host == "" {
			return fmt.Errorf("--public-url %q: must be http://… or https://…", f.PublicURL)
		}
	}
	if f.PublicMQTT != "" && address.Check(f.PublicMQTT) != nil {
		return fmt.Errorf("--public-mqtt %q: must be HOST:PORT", f.PublicMQTT)
	}
	if _, err := f.trustedProxies(); err != nil {
		return err
	}
	if (f.CACert == "") != (f.CAKey == "") {
		return fmt.Errorf("--ca-cert and --ca-key go together")
	}
	if err := f.validateServers(); err != nil {
		return err
	}
	if f.LogReplicas != 1 && f.LogReplicas != 3 {
		return fmt.Errorf("--log-replicas %d: 1 or 3", f.LogReplicas)
	}
	if f.Shards < 0 || f.Shards > 1024 {
		return fmt.Errorf(
			"--shards %d: 1 to 1024, or 0 for as many as the installation was made with", f.Shards,
		)
	}
	if _, err := f.syncInterval(); err != nil {
		return err
	}
	if _, err := diskspace.ParseReserve(f.DiskReserve); err != nil {
		return fmt.Errorf("--disk-reserve %w", err)
	}
	if err := f.validateMail(); err != nil {
		return err
	}
	for name, d := range map[string]time.Duration{
		"event-retention": f.EventRetention, "stream-lifetime": f.StreamLifetime,
		"stream-keepalive": f.StreamKeepalive,
		"hub-timeout":      f.HubTimeout, "idempotency-window": f.IdempotencyWindow,
		"invitation-ttl": f.InvitationTTL, "pairing-window": f.PairingWindow,
		"start-timeout": f.StartTimeout,
	} {
		if d < 100*time.Millisecond {
			return fmt.Errorf("--%s %s: at least 100ms", name, d)
		}
	}
	for name, n := range map[string]int64{
		"rate": int64(f.Rate), "burst": int64(f.Burst), "streams-per-key": int64(f.StreamsPerKey),
		"calls": int64(f.Calls), "calls-per-org": int64(f.CallsPerOrg),
		"calls-per-hub": int64(f.CallsPerHub), "commands-per-org": int64(f.CommandsPerOrg),
		"idempotency-keys-per-org": int64(f.IdempotencyKeysPerOrg),
		"sites-per-org":            int64(f.SitesPerOrg), "keys-per-org": int64(f.KeysPerOrg),
		"orgs-per-account": int64(f.OrgsPerAccount), "members-per-org": int64(f.MembersPerOrg),
		"changes-per-org":             int64(f.ChangesPerOrg),
		"invitations-per-org":         int64(f.InvitationsPerOrg),
		"pending-invitations-per-org": int64(f.PendingInvitationsPerOrg),
		"invitations-per-address":     int64(f.InvitationsPerAddress),
		"waiting-mails-per-org":       int64(f.WaitingMailsPerOrg),
		"sign-in-links-per-address":   int64(f.SignInLinksPerAddress),
		"sign-in-links-per-network":   int64(f.SignInLinksPerNetwork),
		"history-cache":               f.HistoryCache, "live-cache": f.LiveCache,
		"hub-resets": int64(f.HubResets), "hub-reset-burst": int64(f.HubResetBurst),
		"hub-enrolments":       int64(f.HubEnrolments),
		"hub-enrolment-burst":  int64(f.HubEnrolmentBurst),
		"hub-connections":      int64(f.HubConnections),
		"hub-connection-burst": int64(f.HubConnectionBurst),
		"answer-memory":        f.AnswerMemory, "answer-memory-per-key": f.AnswerMemoryPerKey,
	} {
		if n < 1 {
			return fmt.Errorf("--%s %d: at least 1", name, n)
		}
	}
	for name, n := range map[string]int{
		"hub-reset-burst": f.HubResetBurst, "hub-enrolment-burst": f.HubEnrolmentBurst,
	} {
		if n > domain.MaxHubBurst {
			return fmt.Errorf("--%s %d: at most %d", name, n, domain.MaxHubBurst)
		}
	}
	if f.InvitationsPerOrg > domain.MaxInvitationsPerHour {
		return fmt.Errorf(
			"--invitations-per-org %d: at most %d", f.InvitationsPerOrg,
			domain.MaxInvitationsPerHour,
		)
	}
	for name, n := range map[string]int{
		"connections": f.Connections, "connections-per-address": f.ConnectionsPerAddress,
		"broker-connections": f.BrokerConnections,
	} {
		if n < 0 {
			return fmt.Errorf(
				"--%s %d: at least 1, or 0 for what the limit of open files allows", name, n,
			)
		}
	}
	if f.AnswerMemoryPerKey > f.AnswerMemory {
		return fmt.Errorf(
			"--answer-memory-per-key %d: at most --answer-memory, which is %d",
			f.AnswerMemoryPerKey, f.AnswerMemory,
		)
	}
	return nil
}

// validateServers checks what is said about a broker and a database of one's own.
func (f Config) validateServers() error {
	if f.PostgresURL != "" {
		if _, err := pgx.ParseConfig(f.PostgresURL); err != nil {
			// the cause may have the password in it
			return fmt.Errorf("--postgres-url: must be like postgres://USER:PASSWORD@HOST/DATABASE")
		}
	}
	switch {
	case f.NATSURL == "":
		return nil
	case f.NATSCredentials == "":
		return fmt.Errorf("--nats-url needs --nats-credentials")
	case !f.has(roleAPI):
		return nil
	// This replica enrols hubs: they need certificates that the broker takes, and its address.
	case f.CACert == "":
		return fmt.Errorf(
			"--nats-url needs --ca-cert and --ca-key, the authority that the broker's MQTT " +
				"listener trusts, unless --roles is without api",
		)
	case f.PublicMQTT == "":
		return fmt.Errorf(
			"--nats-url needs --public-mqtt, where hubs reach the broker, unless --roles is without api",
		)
	}
	return nil
}

// syncInterval reads --sync: zero means that every write is synced before it is acknowledged.
func (f Config) syncInterval() (time.Duration, error) { return ParseSync(f.Sync) }

func ParseSync(text string) (time.Duration, error) {
	if text == "always" {
		return 0, nil
	}
	interval, err := time.ParseDuration(text)
	if err != nil || interval <= 0 {
		return 0, fmt.Errorf("--sync %q: \"always\", or a time such as 2m", text)
	}
	return interval, nil
}

// trustedProxies reads --trusted-proxies: networks, or single addresses.
func (f Config) trustedProxies() ([]netip.Prefix, error) {
	var proxies []netip.Prefix
	for _, text := range f.TrustedProxies {
		network, err := netip.ParsePrefix(text)
		if addr, addrErr := netip.ParseAddr(text); addrErr == nil && addr.Zone() == "" {
			network, err = addr.Prefix(addr.BitLen())
		}
		if err != nil || network.Addr().Is4In6() || network != network.Masked() {
			return nil, fmt.Errorf(
				"--trusted-proxies %q: a network is like 10.0.0.0/8, 2001:db8::/32 or 192.0.2.7, "+
					"with no bits behind its length",
				text,
			)
		}
		proxies = append(proxies, network)
	}
	return proxies, nil
}
