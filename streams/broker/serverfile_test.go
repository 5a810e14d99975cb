package broker

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"hubcloud/streams"
)

func serverFile(dir string) ServerFile {
	return ServerFile{
		Nodes: []string{
			"nats-1",
			"nats-2",
			"nats-3",
		}, Cluster: "hubcloud", Listen: "127.0.0.1", ClientPort: 4222, RoutePort: 6222,
		MQTTPort: 8883,
		Monitor:  "127.0.0.1:8222", Folder: dir, Store: "/var/lib/nats", MaxStore: "100GB",
	}
}

// parsed gives the options that a nats-server takes from the file; its TLS blocks are left out,
// since they name files that are not here.
func parsed(t *testing.T, f ServerFile, c streams.Credentials) *server.Options {
	t.Helper()
	text, err := f.Text(c)
	if err != nil {
		t.Fatal(err)
	}
	for strings.Contains(text, "tls {") {
		from := strings.Index(text, "tls {")
		text = text[:from] + text[from+strings.Index(text[from:], "}")+1:]
	}
	text = strings.ReplaceAll(text, "$"+ServerNameVariable, "nats-1")
	path := filepath.Join(f.Folder, ServerFileName)
	for name, content := range map[string]string{
		path: text, filepath.Join(f.Folder, RouteSecretName): f.RouteSecret(nil),
	} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	opts, err := server.ProcessConfigFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return opts
}

// TestServerFileIsTheEmbeddedBroker: servers of one's own get the limits and the accounts of the
// embedded one.
func TestServerFileIsTheEmbeddedBroker(t *testing.T) {
	t.Parallel()
	c, err := newCredentials(3)
	if err != nil {
		t.Fatal(err)
	}
	for _, interval := range []time.Duration{0, 2 * time.Minute} {
		f := serverFile(t.TempDir())
		f.SyncInterval = interval
		own := parsed(t, f, c)
		embedded, err := serverOptions(
			Config{
				DataDir:      t.TempDir(),
				NATSAddr:     "127.0.0.1:0",
				MQTTAddr:     "127.0.0.1:0",
				MQTTTLS:      &tls.Config{},
				SyncInterval: interval,
			},
			installation{ServerName: "embedded", Shards: 3},
			c,
			100<<30,
		)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range []*server.Options{own, embedded} {
			o.MQTT.Host, o.MQTT.Port, o.MQTT.TLSConfig, o.MQTT.TLSTimeout, o.MQTT.StreamReplicas = "", 0, nil, 0, 0
		}
		if !reflect.DeepEqual(own.MQTT, embedded.MQTT) {
			t.Errorf("MQTT: %+v, embedded %+v", own.MQTT, embedded.MQTT)
		}
		figures := func(o *server.Options) []any {
			return []any{
				o.MaxPayload,
				o.MaxPending,
				o.MaxConn,
				o.MaxClosedClients,
				o.AuthTimeout,
				o.SyncAlways,
				o.JetStreamMaxMemory,
				o.JetStreamMaxStore,
				o.SystemAccount,
				o.AuthCallout.Issuer,
				o.AuthCallout.Account,
				o.AuthCallout.AuthUsers,
				len(o.Users),
			}
		}
		if got, want := figures(own), figures(embedded); !reflect.DeepEqual(got, want) {
			t.Errorf("%v, embedded %v", got, want)
		}
		if interval > 0 && own.SyncInterval != interval {
			t.Errorf("synced every %v", own.SyncInterval)
		}
		if got, want := accountNames(own), accountNames(embedded); !slices.Equal(got, want) {
			t.Errorf("accounts %v, embedded %v", got, want)
		}
		if len(own.Routes) != 3 || own.Cluster.Password == "" || !own.Cluster.NoAdvertise {
			t.Errorf("cluster %+v, routes %v", own.Cluster, own.Routes)
		}
	}
}

func accountNames(o *server.Options) []string {
	var names []string
	for _, account := range o.Accounts {
		names = append(names, account.Name)
	}
	slices.Sort(names)
	return names
}

// TestServerFileKeepsSecretsOut: the configuration can be shown around.
func TestServerFileKeepsSecretsOut(t *testing.T) {
	t.Parallel()
	c, err := newCredentials(2)
	if err != nil {
		t.Fatal(err)
	}
	f := serverFile(t.TempDir())
	text, err := f.Text(c)
	if err != nil {
		t.Fatal(err)
	}
	routes := f.RouteSecret(nil)
	password := string(routePasswordPattern.FindSubmatch([]byte(routes))[1])
	secrets := []string{c.IssuerSeed, password}
	for _, user := range c.Users {
		secrets = append(secrets, user.Password)
	}
	for _, secret := range secrets {
		if strings.Contains(text, secret) {
			t.Errorf("the configuration holds %q", secret)
		}
	}
	f.Nodes = []string{"a", "b", "c"}
	if again := f.RouteSecret([]byte(routes)); strings.Count(again, password) != 4 {
		t.Errorf("the password of the routes changes with the nodes: %s", again)
	}
}

func TestServerFileRefusesNodes(t *testing.T) {
	t.Parallel()
	for _, nodes := range [][]string{
		nil, {"a", "b"}, {"a", "b", "a"}, {"a:4222"}, {""}, {"a b"}, {"nats://a"}, {`a"`},
	} {
		if err := (ServerFile{Nodes: nodes}).Validate(); err == nil {
			t.Errorf("%q is taken", nodes)
		}
	}
	for _, nodes := range [][]string{{"a"}, {"::1"}, {"10.0.0.1", "10.0.0.2", "10.0.0.3"}} {
		if err := (ServerFile{Nodes: nodes}).Validate(); err != nil {
			t.Errorf("%q: %v", nodes, err)
		}
	}
}
