package broker

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"hubcloud/streams"
)

// The names of the files that a configuration refers to, in ServerFile.Folder.
const (
	// ServerFileName is the configuration itself.
	ServerFileName = "nats.conf"
	// RouteSecretName holds the password under which the servers of a cluster know each other.
	RouteSecretName = "routes.conf"
	// AuthorityName, CertificateName and KeyName are the authority that signs hubs' certificates,
	// and the servers' own certificate.
	AuthorityName   = "ca.pem"
	CertificateName = "broker.pem"
	KeyName         = "broker-key.pem"
)

// ServerNameVariable is the environment variable from which a server takes its name.
const ServerNameVariable = "NATS_SERVER_NAME"

// The user of the cluster's routes, and the variables in RouteSecretName.
const (
	routeUser     = "route"
	routePassword = "ROUTE_PASSWORD"
	routeURLs     = "ROUTES"
)

// routePasswordPattern finds the password in RouteSecretName.
var routePasswordPattern = regexp.MustCompile(`(?m)^` + routePassword + `: "([A-Za-z0-9_-]+)"$`)

// maxReplicas is the most copies that the server keeps of the sessions of MQTT clients by itself.
const maxReplicas = 3

// ServerFile is the configuration of nats-servers of one's own. All servers of a cluster read the
// same one, and read from their environment which of them they are.
type ServerFile struct {
	// Nodes are the host names or addresses under which the servers reach each other and the
	// service reaches them: one, or a cluster of 3 or 5.
	Nodes []string
	// Cluster is the name of the cluster.
	Cluster string
	// Listen is the address that they listen on, without a port: an interface's, or one that stands
	// for all.
	Listen string
	// ClientPort is the service's, RoutePort the cluster's, MQTTPort the hubs'.
	ClientPort, RoutePort, MQTTPort int
	// Monitor is the address of the server's own health and metrics, host:port; empty for none.
	Monitor string
	// Folder is where the files lie on the servers, Store where they keep streams.
	Folder, Store string
	// MaxStore bounds what a server's streams may hold, such as 100GB; empty is three quarters of
	// the disk that is free when it starts.
	MaxStore string
	// SyncInterval is as in Config.
	SyncInterval time.Duration
}

// Check says what is wrong with it.
func (f ServerFile) Check() error {
	switch n := len(f.Nodes); {
	case n != 1 && n != 3 && n != 5:
		return fmt.Errorf(
			"%d nodes: one server, or a cluster of 3 or 5, of which more than half must be there "+
				"for anything to be stored",
			n,
		)
	case len(slices.Compact(slices.Sorted(slices.Values(f.Nodes)))) != n:
		return errors.New("a node is named twice")
	}
	for _, node := range f.Nodes {
		if u, err := url.Parse("nats://" + bracketed(node)); err != nil || u.Hostname() != node ||
			node == "" ||
			strings.ContainsAny(node, " \"'") {
			return fmt.Errorf("node %q: a host name or an address, without a port", node)
		}
	}
	return nil
}

// URL is the address of the servers for clients.
func (f ServerFile) URL() string {
	urls := make([]string, len(f.Nodes))
	for i, node := range f.Nodes {
		urls[i] = "tls://" + net.JoinHostPort(node, strconv.Itoa(f.ClientPort))
	}
	return strings.Join(urls, ",")
}

// Credentials gives those kept in dir, or new ones for as many shards (0: as many as there are,
// DefaultShards in new ones); with the address of the servers and the authority that vouches for
// them. The caller writes them.
func (f ServerFile) Credentials(
	dir string, shards int, authority []byte,
) (streams.Credentials, error) {
	known, err := streams.ReadCredentials(path.Join(dir, credentialsFile))
	switch {
	case err == nil && shards == 0:
		shards = known.Shards
	case err == nil && shards != known.Shards:
		return streams.Credentials{}, fmt.Errorf(
			"%w: %s is of one with %d, and %d are asked for", ErrShards,
			path.Join(dir, credentialsFile), known.Shards, shards,
		)
	case shards == 0:
		shards = DefaultShards
	}
	c, err := openCredentials(dir, shards)
	c.URL, c.Authority = f.URL(), string(authority)
	return c, err
}

// Text is the configuration file. It holds no secret: of passwords only hashes, and the routes' is
// in a file of its own.
func (f ServerFile) Text(c streams.Credentials) (string, error) {
	if err := f.Check(); err != nil {
		return "", err
	}
	layout, err := NewLayout(c)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	f.writeHead(&text)
	f.writeStore(&text)
	f.writeMQTT(&text)
	if len(f.Nodes) > 1 {
		f.writeCluster(&text)
	}
	text.WriteString(`
# Who may log in, and what the accounts give each other: the same as in the broker that the service brings along. The service's users come in
# by password, over the client port only. For everybody else, which is hubs, the server asks the service (auth_callout), which answers from
# its directory and signs with the issuer's key. Of the passwords there are hashes here; they themselves are in ` + credentialsFile + `.
#   SYS      the servers' own events and requests: who connects and leaves, and cutting connections
#   CLOUD    the directory, the buckets, mails that wait, and what replicas say to each other
#   TAP      "hubcloud tap" with the service's credentials: it hears every feed and reads every hub log (its imports, the shards' exports), and
#            can write nothing. What is answered on a feed's subject goes nowhere (mappings): a server answers wherever it is asked to
#   TAP00…   the same for analytics, one account for each of the credentials that were made, so that none can answer into another's inbox
#   SHARD00… hubs, and their logs; over several accounts since a server compares each new stream with all of its account
`)
	text.WriteString(layout.Text())
	return text.String(), nil
}

func (f ServerFile) writeHead(text *strings.Builder) {
	fmt.Fprintf(
		text,
		`# Configuration of nats-server for hubcloud, written by "hubcloud broker-config". Every server reads this same file, and its own name from its environment:
#   %s=NAME nats-server --config %s
# A name stays the same for ever: the others know a server by it, and what it stores. (Given as --name, the server could not reload this file.)
server_name: $%s

# The service connects here. Passwords cross this line, so it has TLS; the service checks the certificate against the authority in %s.
listen: %q
tls {
  cert_file: %q
  key_file: %q
  # Hundreds of connections that come back at once wait for their turn; one that is cut off comes again and makes the queue longer.
  timeout: %d
}
`,
		ServerNameVariable,
		f.file(ServerFileName),
		ServerNameVariable,
		credentialsFile,
		net.JoinHostPort(f.Listen, strconv.Itoa(f.ClientPort)),
		f.file(CertificateName),
		f.file(KeyName),
		tlsTimeoutSeconds,
	)
	if f.Monitor != "" {
		fmt.Fprintf(text, `
# Health (/healthz) and figures (/varz, /jsz, /connz) of this server, without a password: keep it where only operators are.
http: %q
`, f.Monitor)
	}
	fmt.Fprintf(text, `
# The largest message of anyone. A hub that sends more is cut off, and would send it again for ever; the hub link's own limit is an eighth of this.
max_payload: %d
# What may wait for one connection that does not read: the service's connections carry thousands of hubs.
max_pending: %d
# Out of the way: memory and open files end first. A hub takes a connection, and an open file for its log (LimitNOFILE, ulimit -n).
max_connections: %d
# Ended connections are remembered for questions that nobody asks here.
max_closed_clients: %d
# When a server is told to leave ("nats-server --signal ldm=PID", before an upgrade), it sends hubs and service to the others over this time.
lame_duck_duration: "30s"
lame_duck_grace_period: "2s"
`, maxPayload, maxPending, maxConnections, maxClosedConnections)
}

func (f ServerFile) writeStore(text *strings.Builder) {
	sync, why := "always", "Every write is on disk before it is acknowledged: what hubs and "+
		"callers were told is stored outlives a power cut."
	if f.SyncInterval > 0 {
		sync, why = f.SyncInterval.String(), "Writes reach the disk this often: what was "+
			"acknowledged outlives a crash of the server, and not a power cut of all of them."
	}
	fmt.Fprintf(text, `
# Streams: hub logs, the directory, the buckets.
jetstream {
  store_dir: %q
  # %s
  sync_interval: %s
  # The service keeps nothing in memory only; the server wants a number.
  max_memory_store: %d
`, f.Store, why, sync, memoryStorage)
	if f.MaxStore != "" {
		fmt.Fprintf(
			text,
			"  # Past this the server refuses to store, which the service can tell its callers; "+
				"a full disk would end everything.\n  max_file_store: %s\n",
			f.MaxStore,
		)
	}
	text.WriteString("}\n")
}

func (f ServerFile) writeMQTT(text *strings.Builder) {
	fmt.Fprintf(text, `
# Hubs: MQTT 3.1.1 over TLS.
mqtt {
  listen: %q
  tls {
    cert_file: %q
    key_file: %q
    # The authority that signs hubs' certificates. Without one of its certificates nobody gets as far as the question who it is.
    ca_file: %q
    verify: true
    timeout: %d
  }
  # For the CONNECT after the handshake, and for a session to be stored: all hubs of a building come back at the same moment.
  authorization { timeout: %d }
  js_api_timeout: %q
  # Copies of what the server keeps of its MQTT clients, so that hubs can connect while a server is away.
  stream_replicas: %d
  # QoS 2 would let a client fill the disk: a publish is refused, a subscription gets QoS 1. The hub link uses neither.
  %s
}
`, net.JoinHostPort(f.Listen, strconv.Itoa(f.MQTTPort)), f.file(CertificateName), f.file(KeyName),
		f.file(AuthorityName), tlsTimeoutSeconds,
		connectTimeoutSeconds, sessionTimeout, min(len(f.Nodes), maxReplicas), mqttRules)
}

func (f ServerFile) writeCluster(text *strings.Builder) {
	fmt.Fprintf(
		text,
		`
# The routes between the servers. They carry every account's data, so they have TLS in both directions and a password as well: hubs hold
# certificates of the same authority. The password, and the routes that have it in them, are in the file beside this one.
include %q
cluster {
  name: %q
  listen: %q
  authorization { user: %s, password: $%s, timeout: %d }
  tls {
    cert_file: %q
    key_file: %q
    ca_file: %q
    verify: true
    timeout: %d
  }
  # Clients have every server's address from their credentials; addresses that servers see of each other may be out of their reach.
  no_advertise: true
  routes: $%s
}
`,
		RouteSecretName,
		f.Cluster,
		net.JoinHostPort(f.Listen, strconv.Itoa(f.RoutePort)),
		routeUser,
		routePassword,
		connectTimeoutSeconds,
		f.file(CertificateName),
		f.file(KeyName),
		f.file(AuthorityName),
		tlsTimeoutSeconds,
		routeURLs,
	)
}

// RouteSecret is the content of RouteSecretName. It keeps the password of a former content, and
// makes one when there is none.
func (f ServerFile) RouteSecret(former []byte) string {
	password := newUser(routeUser).Password
	if kept := routePasswordPattern.FindSubmatch(former); kept != nil {
		password = string(kept[1])
	}
	var text strings.Builder
	fmt.Fprintf(
		&text,
		"# Under this password the servers of the cluster know each other. Included by %s.\n%s: %q\n%s: [\n",
		ServerFileName, routePassword, password, routeURLs,
	)
	for _, node := range f.Nodes {
		address := net.JoinHostPort(node, strconv.Itoa(f.RoutePort))
		fmt.Fprintf(
			&text,
			"  %q\n",
			(&url.URL{
				Scheme: "nats-route", User: url.UserPassword(routeUser, password), Host: address,
			}).String(),
		)
	}
	text.WriteString("]\n")
	return text.String()
}

func (f ServerFile) file(name string) string { return path.Join(f.Folder, name) }

func bracketed(host string) string {
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}
