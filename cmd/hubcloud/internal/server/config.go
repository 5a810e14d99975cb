package server

import (
	"slices"
	"time"

	"hubcloud/cmd/hubcloud/internal/installation"
)

// Config configures a replica. Package cli makes a flag and an environment variable of each field.
// The tag `help` documents the field, and package cli sets it to the value of the tag `default`. A
// new field is checked in Validate; a field of the group Limits also has a row in
// deploy/docs/limits.md.
type Config struct {
	DataDir string `help:"Folder for all files that the installation keeps on this machine." default:"./data" type:"path" group:"Where"`
	HTTP    string `help:"Address of the API." default:":8080" name:"http" group:"Where"`
	Admin   string `help:"Address for metrics, health checks and profiles." default:"127.0.0.1:9090" group:"Where"`
	MQTT    string `help:"Address for hubs (MQTT over TLS)." default:":8883" name:"mqtt" group:"Where"`
	NATS    string `help:"Address of the broker for operators and analytics." default:"127.0.0.1:4222" name:"nats" group:"Where"`

	PublicURL  string `help:"URL of the API for clients, without /v1. Defaults to one made of --http." placeholder:"URL" name:"public-url" group:"Where"`
	PublicMQTT string `help:"HOST:PORT of the broker for hubs. Defaults to the host of --public-url and the port of --mqtt." placeholder:"HOST:PORT" name:"public-mqtt" group:"Where"`

	TLSCert string `help:"Certificate and chain (PEM) of the API: --http then speaks HTTPS. The file is read again when it changes." placeholder:"FILE" name:"tls-cert" type:"path" group:"HTTPS"`
	TLSKey  string `help:"Key (PEM) of --tls-cert. The file is read again when it changes." placeholder:"FILE" name:"tls-key" type:"path" group:"HTTPS"`

	ACMEDomains     []string `help:"Names to obtain certificates for by ACME: --http then speaks HTTPS. The first is the host of --public-url. The authority must reach --http at port 443 of each name, or --http-redirect at port 80." placeholder:"DOMAIN" name:"acme-domain" sep:"," group:"HTTPS"`
	ACMEAcceptTerms bool     `help:"Accept the terms of service of --acme-directory." name:"acme-accept-terms" group:"HTTPS"`
	ACMEDirectory   string   `help:"Directory of the ACME server. Defaults to Let's Encrypt." placeholder:"URL" name:"acme-directory" group:"HTTPS"`
	ACMECA          string   `help:"Certificates (PEM) that the ACME server's own certificate is checked with. Defaults to the system's." placeholder:"FILE" name:"acme-ca" type:"path" group:"HTTPS"`
	HTTPRedirect    string   `help:"Address without TLS, such as :80, that redirects browsers to --public-url and answers ACME challenges. Requests with keys or secrets are rejected there." placeholder:"HOST:PORT" name:"http-redirect" group:"HTTPS"`

	TrustedProxies []string `help:"Networks (CIDR) of the proxies in front of --http. The client address of a request from a proxy is read from X-Forwarded-For." placeholder:"CIDR" sep:"," group:"Where"`

	NATSURL         string   `help:"Use this broker instead of an embedded one." placeholder:"URL" name:"nats-url" group:"External servers"`
	NATSCredentials string   `help:"Credentials file for --nats-url." placeholder:"FILE" name:"nats-credentials" type:"path" group:"External servers"`
	PostgresURL     string   `help:"Use this database instead of a private one." placeholder:"URL" name:"postgres-url" group:"External servers"`
	Roles           []string `help:"Roles of this replica: api, bridge, projector." default:"api,bridge,projector" sep:"," group:"External servers"`
	CACert          string   `help:"Certificate (PEM) of the authority that signs the certificates of the broker and the hubs. By default the service creates an authority." placeholder:"FILE" name:"ca-cert" type:"path" group:"External servers"`
	CAKey           string   `help:"Key (PEM) of --ca-cert." placeholder:"FILE" name:"ca-key" type:"path" group:"External servers"`
	CAAlso          string   `help:"Certificates (PEM) of further authorities that the broker and hubs trust, for the time in which one authority replaces another." placeholder:"FILE" name:"ca-also" type:"path" group:"External servers"`

	StartTimeout time.Duration `help:"How long a start waits for the broker, its streams and the database. The start retries until then, and fails after it." default:"5m" group:"External servers"`

	SMTPURL  string `help:"Mail server: smtp://USER:PASSWORD@HOST:PORT requires STARTTLS (except on this machine, or with ?tls=optional), smtps://… uses TLS. By default mails are written to outbox/ in --data-dir." placeholder:"URL" name:"smtp-url" group:"Mail"`
	MailFrom string `help:"Sender of mails, such as hubs@example.org or \"Hubs <hubs@example.org>\". Defaults to no-reply at the host of --public-url." placeholder:"ADDRESS" name:"mail-from" group:"Mail"`

	Shards      int    `help:"Number of broker accounts that hold the hub logs, 1 to 256, fixed when the installation is created. Use 16 for up to 50,000 hubs, 64 for more. 0 keeps the number of the installation; a new one gets 16." default:"0" group:"Storage"`
	LogReplicas int    `help:"Copies in a cluster of every stream but the hub logs, which have one: 1 or 3." default:"1" group:"Storage"`
	Sync        string `help:"When a write is synced to disk: \"always\", before it is acknowledged, survives a power cut; an interval such as 2m is faster and survives only a crash of the process." default:"always" group:"Storage"`

	DiskReserve string `help:"Space to keep free on the disk of --data-dir, such as 5%, 1GiB, or both (the smaller counts); 0 for none. With less free space the service stores no hub events, changes or commands, but still answers reads. Ignored with --nats-url." default:"5%,1GiB" group:"Storage"`

	WebhookPrivate        bool          `help:"Let webhooks of organizations be posted to addresses of this machine and of private networks." default:"${webhookprivate}" name:"webhook-private-addresses" group:"Where"`
	OpenSignUp            bool          `help:"Let everyone with an e-mail address sign in to the portal and create an organization." name:"open-signup" group:"Portal"`
	OIDC                  string        `help:"Identity provider with which people sign in to the portal (OpenID Connect): a JSON file, described in deploy/docs/sign-in.md." placeholder:"FILE" name:"oidc" type:"path" group:"Portal"`
	Environment           string        `help:"Environment of the API keys: live or dev. It is fixed when the installation is created." default:"${environment}" enum:"live,dev" group:"Where"`
	EventRetention        time.Duration `help:"How long hub events are kept." default:"24h" group:"Limits"`
	StreamLifetime        time.Duration `help:"Longest duration of an event stream." default:"15m" group:"Limits"`
	StreamKeepalive       time.Duration `help:"Interval of keepalives on an event stream." default:"30s" group:"Limits"`
	HubTimeout            time.Duration `help:"How long to wait for a hub's response." default:"10s" group:"Limits"`
	HubReadInterval       time.Duration `help:"Least time between two times that the service asks a hub for all its devices. A hub that was reset is asked at once." default:"1m" group:"Limits"`
	Rate                  int           `help:"Requests per second for each API key." default:"50" group:"Limits"`
	Burst                 int           `help:"Burst of requests for each API key." default:"100" group:"Limits"`
	StreamsPerKey         int           `help:"Concurrent event streams and event reads of one API key." default:"5000" group:"Limits"`
	Connections           int           `help:"Connections of API clients. 0 means a quarter of the process's limit of open files." default:"0" group:"Limits"`
	IdempotencyWindow     time.Duration `help:"How long the response to a request with an Idempotency-Key is kept." default:"24h" group:"Limits"`
	SitesPerOrg           int           `help:"Sites of one organization." default:"10000" group:"Limits"`
	InvitationTTL         time.Duration `help:"How long an invitation is valid." default:"168h" name:"invitation-ttl" group:"Limits"`
	InvitationsPerOrg     int           `help:"Invitations of one organization per hour, at most 1000." default:"100" group:"Limits"`
	InvitationsPerAddress int           `help:"Invitations to one address per hour, from all organizations. One organization may send half of them." default:"10" group:"Limits"`

	LiveCache int64 `help:"Memory for the newest events, in MiB. The cache of older events gets as much." default:"128" group:"Memory"`

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

// https reports whether the public port speaks HTTPS.
func (c Config) https() bool { return c.TLSCert != "" || len(c.ACMEDomains) > 0 }

// Dir returns the data directory.
func (c Config) Dir() installation.Dir { return installation.Dir(c.DataDir) }

func (c Config) has(role string) bool { return slices.Contains(c.Roles, role) }
