package broker

import (
	"crypto/tls"
	_ "embed" // for the template
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
	"text/template"
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

// routePasswordPattern finds the password in RouteSecretName.
var routePasswordPattern = regexp.MustCompile(`(?m)^ROUTE_PASSWORD: "([A-Za-z0-9_-]+)"$`)

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
	return execute("nats.conf.tmpl", struct {
		ServerFile
		Layout                                     Layout
		TLSTimeout, ConnectTimeout, MaxConnections int
		SessionReplicas, MemoryStorage             int
		MQTTRules                                  string
	}{
		f, layout, tlsTimeoutSeconds, connectTimeoutSeconds, maxConnections,
		min(len(f.Nodes), maxReplicas), memoryStorage, mqttRules,
	}), nil
}

//go:embed nats.conf.tmpl
var serverFileTemplate string

var serverFileTemplates = template.Must(template.New("nats.conf.tmpl").Funcs(template.FuncMap{
	"quote": strconv.Quote, "list": quoted,
	"suites": func() string {
		var names []string
		for _, id := range streams.CipherSuites() {
			names = append(names, tls.CipherSuiteName(id))
		}
		return quoted(names)
	},
}).Parse(serverFileTemplate))

// execute returns a template of serverFileTemplate with its data, which the code knows.
func execute(name string, data any) string {
	var text strings.Builder
	if err := serverFileTemplates.ExecuteTemplate(&text, name, data); err != nil {
		panic(fmt.Sprintf("broker: %v", err))
	}
	return text.String()
}

// Path returns the path of a file of the configuration on the servers.
func (f ServerFile) Path(name string) string { return path.Join(f.Folder, name) }

// Address returns an address that the servers listen on.
func (f ServerFile) Address(port int) string {
	return net.JoinHostPort(f.Listen, strconv.Itoa(port))
}

// RouteSecret returns the content of RouteSecretName. It keeps the password of the former content,
// or generates one if there is none.
func (f ServerFile) RouteSecret(former []byte) string {
	password := newUser("route").Password
	if kept := routePasswordPattern.FindSubmatch(former); kept != nil {
		password = string(kept[1])
	}
	var text strings.Builder
	fmt.Fprintf(
		&text,
		"# The password of the cluster's routes. Included by %s.\nROUTE_PASSWORD: %q\nROUTES: [\n",
		ServerFileName, password,
	)
	for _, node := range f.Nodes {
		address := net.JoinHostPort(node, strconv.Itoa(f.RoutePort))
		fmt.Fprintf(
			&text,
			"  %q\n",
			(&url.URL{
				Scheme: "nats-route", User: url.UserPassword("route", password), Host: address,
			}).String(),
		)
	}
	text.WriteString("]\n")
	return text.String()
}

// bracketed returns host, in brackets if it is an IPv6 address.
func bracketed(host string) string {
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}
