package broker

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"hubcloud/streams"
)

// Names of the files of a configuration, in ServerFile.Folder.
const (
	// ServerFileName is the name of the configuration file.
	ServerFileName = "nats.conf"
	// RouteSecretName is the name of the file with the password of the cluster's routes.
	RouteSecretName = "routes.conf"
	// AuthorityName is the name of the certificate of the authority that signs hubs' certificates.
	// CertificateName and KeyName are the names of the servers' certificate and key.
	AuthorityName   = "ca.pem"
	CertificateName = "broker.pem"
	KeyName         = "broker-key.pem"
)

// ServerNameVariable is the environment variable with a server's name.
const ServerNameVariable = "NATS_SERVER_NAME"

// The user of the cluster's routes and the variables in RouteSecretName.
const (
	routeUser     = "route"
	routePassword = "ROUTE_PASSWORD"
	routeURLs     = "ROUTES"
)

// routePasswordPattern finds the password in RouteSecretName.
var routePasswordPattern = regexp.MustCompile(`(?m)^` + routePassword + `: "([A-Za-z0-9_-]+)"$`)

// A server pings each route every routePing, and closes the route when more than routePingMax pings
// have no answer: after routeSilence to routePing more.
const (
	routePing    = 4 * time.Second
	routePingMax = 3
	routeSilence = routePingMax * routePing
)

// maxReplicas is the most replicas that the server allows for its own MQTT streams.
const maxReplicas = 3

// ServerFile is the configuration of external nats-servers. All servers of a cluster use the same
// file. Each reads its name from its environment.
type ServerFile struct {
	// Nodes are the host names or addresses at which the servers and the service reach the servers:
	// one, or a cluster of 3 or 5.
	Nodes []string
	// Cluster is the name of the cluster.
	Cluster string
	// Listen is the address that all servers listen on, without a port. It may be a wildcard
	// address.
	Listen string
	// ClientPort is the port for the service, RoutePort for the cluster and MQTTPort for hubs.
	ClientPort, RoutePort, MQTTPort int
	// Monitor is the address of the servers' monitoring endpoints, host:port. Empty disables them.
	Monitor string
	// Folder is the folder of the configuration on the servers, Store the folder of their streams.
	Folder, Store string
	// MaxStore limits the storage of a server's streams, such as 100GB. Defaults to three quarters
	// of the disk space that is free when the server starts.
	MaxStore string
	// SyncInterval is as in Config.
	SyncInterval time.Duration
}

// Validate returns an error that names the first field whose value is not allowed.
func (f ServerFile) Validate() error {
	switch n := len(f.Nodes); {
	case n != 1 && n != 3 && n != 5:
		return fmt.Errorf(
			"nodes: must be 1, 3 or 5, got %d; a cluster stores messages while more than half of "+
				"its servers run",
			n,
		)
	case len(slices.Compact(slices.Sorted(slices.Values(f.Nodes)))) != n:
		return errors.New("nodes: must not have duplicates")
	}
	for _, node := range f.Nodes {
		if u, err := url.Parse("nats://" + bracketed(node)); err != nil || u.Hostname() != node ||
			node == "" ||
			strings.ContainsAny(node, " \"'") {
			return fmt.Errorf("nodes: must be host names or addresses without a port, got %q", node)
		}
	}
	return nil
}

// URL returns the addresses of the servers for clients, separated by commas.
func (f ServerFile) URL() string {
	urls := make([]string, len(f.Nodes))
	for i, node := range f.Nodes {
		urls[i] = "tls://" + net.JoinHostPort(node, strconv.Itoa(f.ClientPort))
	}
	return strings.Join(urls, ",")
}

// Credentials returns the credentials stored in dir, or new ones, with the addresses of the servers
// and the certificate of their authority. shards defaults to the number in the stored credentials
// or, if these were removed to get new passwords, in the configuration file beside them; for a new
// installation to DefaultShards or ClusterShards. The caller must store the result.
func (f ServerFile) Credentials(
	dir string, shards int, authority []byte,
) (streams.Credentials, error) {
	known, err := streams.ReadCredentials(path.Join(dir, credentialsFile))
	switch {
	case err == nil && shards == 0:
		shards = known.Shards
	case err == nil && shards != known.Shards:
		return streams.Credentials{}, fmt.Errorf(
			"%w: %s has %d, got %d", ErrShards,
			path.Join(dir, credentialsFile), known.Shards, shards,
		)
	case shards == 0:
		if shards, err = f.knownShards(dir); err != nil {
			return streams.Credentials{}, err
		}
	}
	c, err := openCredentials(dir, shards)
	c.URL, c.CloudURL, c.Authority = f.URL(), "", string(authority)
	return c, err
}

// shardAccount matches the start of a shard's account in a configuration file.
var shardAccount = regexp.MustCompile(`(?m)^  SHARD[0-9]+ \{$`)

// knownShards returns the number of shards of the configuration file in dir, or the default if
// there is none.
func (f ServerFile) knownShards(dir string) (int, error) {
	text, err := os.ReadFile(path.Join(dir, ServerFileName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	known := len(shardAccount.FindAll(text, -1))
	switch {
	case known > 0:
		return known, nil
	case len(f.Nodes) > 1:
		return ClusterShards, nil
	default:
		return DefaultShards, nil
	}
}

// Text returns the configuration file. It has no secrets, only password hashes. The password of the
// routes is in a file of its own.
func (f ServerFile) Text(c streams.Credentials) (string, error) {
	if err := f.Validate(); err != nil {
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
# The accounts, their users and what they share, as in the service's embedded broker. The service's users log in with a password, on the
# client port only. About all other clients, such as hubs, the server asks the service (auth_callout). The service decides by its directory
# and signs its answer with the issuer's key. This file has only hashes of the passwords. The passwords are in ` + credentialsFile + `.
#   SYS      the servers' own events and requests: connects, disconnects, and closing connections
#   CLOUD    the directory, the buckets, queued mails, and messages between replicas
#   TAP      "hubcloud tap" with the service's credentials: reads all feeds and hub logs (its imports, the shards' exports) and writes
#            nothing. The mappings drop responses on a feed's subject, since a server sends a response to any subject that is asked for
#   TAP00…   the same for analytics: an account for each of the tap credentials, so that none can send to another's inbox
#   SHARD00… hubs and their logs. There are several shards because a server compares each new stream with all others of its account
`)
	text.WriteString(layout.Text())
	return text.String(), nil
}

func (f ServerFile) writeHead(text *strings.Builder) {
	fmt.Fprintf(
		text,
		`# Configuration of nats-server for hubcloud, written by "hubcloud broker-config". All servers use this file. Each has its name in its environment:
#   %s=NAME nats-server --config %s
# A server's name must never change: the others identify it and its data by the name. (With --name, the server could not reload this file.)
server_name: $%s

# For the service. Passwords are sent here, so it has TLS. The service checks the certificate against the authority in %s.
listen: %q
tls {
  cert_file: %q
  key_file: %q
  # For TLS 1.2: without suites in CBC mode.
  cipher_suites: [%s]
  # Long enough for hundreds of connections at once. A client that times out tries again and makes the queue longer.
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
		cipherSuites(),
		tlsTimeoutSeconds,
	)
	if f.Monitor != "" {
		fmt.Fprintf(text, `
# Health (/healthz) and statistics (/varz, /jsz, /connz), without a password: make it reachable for operators only.
http: %q
`, f.Monitor)
	}
	fmt.Fprintf(text, `
# The largest message. A hub that sends more is disconnected and would send it again forever. The hub protocol's limit is an eighth of this.
max_payload: %d
# The most bytes that may wait for a connection. The service's connections carry the messages of thousands of hubs.
max_pending: %d
# Practically no limit: memory and open files run out first. A hub needs a connection and an open file for its log (LimitNOFILE, ulimit -n).
max_connections: %d
# Closed connections that are remembered for /connz.
max_closed_clients: %d
# The time over which a server hands over its clients before it stops ("nats-server --signal ldm=PID", before an upgrade).
lame_duck_duration: "30s"
lame_duck_grace_period: "2s"
`, maxPayload, maxPending, maxConnections, maxClosedConnections)
}

func (f ServerFile) writeStore(text *strings.Builder) {
	sync, why := "always", "Every write is synced to disk before it is acknowledged, except to hub "+
		"logs, which are written again from the journal. A power cut loses no acknowledged message."
	if f.SyncInterval > 0 {
		sync, why = f.SyncInterval.String(), "Writes are synced to disk at this interval. A crash "+
			"of the server loses no acknowledged message, a power cut of all servers may."
	}
	fmt.Fprintf(text, `
# Streams: hub logs, the directory and the buckets.
jetstream {
  store_dir: %q
  # %s
  sync_interval: %s
  # Not used by the service, but the server requires a limit.
  max_memory_store: %d
`, f.Store, why, sync, memoryStorage)
	if f.MaxStore != "" {
		fmt.Fprintf(
			text,
			"  # Beyond this the server rejects writes, which the service reports to its callers. "+
				"A full disk would stop everything.\n  max_file_store: %s\n",
			f.MaxStore,
		)
	}
	text.WriteString("}\n")
}

// cipherSuites returns the names of streams.CipherSuites for the file.
func cipherSuites() string {
	var names []string
	for _, id := range streams.CipherSuites() {
		names = append(names, strconv.Quote(tls.CipherSuiteName(id)))
	}
	return strings.Join(names, ", ")
}

func (f ServerFile) writeMQTT(text *strings.Builder) {
	fmt.Fprintf(text, `
# Hubs: MQTT 3.1.1 over TLS.
mqtt {
  listen: %q
  tls {
    cert_file: %q
    key_file: %q
    # The authority that signs hubs' certificates. A client without a certificate of this authority is rejected in the handshake.
    ca_file: %q
    verify: true
    cipher_suites: [%s]
    timeout: %d
  }
  # For the CONNECT packet: long enough for all hubs that reconnect after a failure.
  authorization { timeout: %d }
  # For each request about a session. One from before the streams have leaders gets no answer, and holds up all hubs of the server.
  js_api_timeout: %q
  # Replicas of MQTT sessions, so that hubs can connect while a server is down.
  stream_replicas: %d
  # With QoS 2 a client could fill the disk: publishing is rejected, a subscription gets QoS 1. The hub protocol does not use QoS 2.
  %s
}
`, net.JoinHostPort(f.Listen, strconv.Itoa(f.MQTTPort)), f.file(CertificateName), f.file(KeyName),
		f.file(AuthorityName), cipherSuites(), tlsTimeoutSeconds,
		connectTimeoutSeconds, clusterSessionTimeout, min(len(f.Nodes), maxReplicas), mqttRules)
}

func (f ServerFile) writeCluster(text *strings.Builder) {
	fmt.Fprintf(
		text,
		`
# The routes between the servers. They carry the data of all accounts. They have mutual TLS and a password, since hubs too have
# certificates of the same authority. The password and the routes, which contain it, are in a file of their own.
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
    cipher_suites: [%s]
    timeout: %d
  }
  # A route without a network is closed after %s to %s, and opened again as soon as the network is back. The server's default is minutes,
  # and a connection that survived an interruption can take as long again to notice that it is over.
  ping_interval: %q
  ping_max: %d
  # Clients have the addresses of all servers in their credentials. The servers' addresses for each other may be unreachable for clients.
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
		cipherSuites(),
		tlsTimeoutSeconds,
		routeSilence,
		routeSilence+routePing,
		routePing.String(),
		routePingMax,
		routeURLs,
	)
}

// RouteSecret returns the content of RouteSecretName. It keeps the password of the former content,
// or generates one if there is none.
func (f ServerFile) RouteSecret(former []byte) string {
	password := newUser(routeUser).Password
	if kept := routePasswordPattern.FindSubmatch(former); kept != nil {
		password = string(kept[1])
	}
	var text strings.Builder
	fmt.Fprintf(
		&text,
		"# The password of the cluster's routes. Included by %s.\n%s: %q\n%s: [\n",
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

// bracketed returns host, in brackets if it is an IPv6 address.
func bracketed(host string) string {
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}
