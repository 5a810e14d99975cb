package broker

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"hubcloud/streams"
)

func serverFile(dir string) ServerFile {
	return ServerFile{
		Nodes: []string{"nats-1", "nats-2", "nats-3"}, Cluster: "hubcloud", Listen: "127.0.0.1",
		ClientPort: 4222, RoutePort: 6222, MQTTPort: 8883, Monitor: "127.0.0.1:8222",
		Folder: dir, Store: "/var/lib/nats", MaxStore: "100GB",
	}
}

// parsed returns the options that nats-server reads from the file. Of its TLS blocks, which name
// files that do not exist here, it leaves only the cipher suites of the first.
func parsed(t *testing.T, f ServerFile, c streams.Credentials) *server.Options {
	t.Helper()
	text, err := f.Text(c)
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile(`tls \{[^}]*(cipher_suites: \[[^]]*\])[^}]*\}`)
	blocks := block.FindAllStringSubmatch(text, -1)
	if len(blocks) != 3 {
		t.Fatalf("TLS blocks with cipher suites: got %d, want 3 in %s", len(blocks), text)
	}
	const place = "@TLS@"
	text = block.ReplaceAllString(text, place)
	text = strings.Replace(text, place, "tls { "+blocks[0][1]+" }", 1)
	text = strings.ReplaceAll(text, place, "")
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

// TestServerFileMatchesTheEmbeddedBroker checks that an external server gets the limits and
// accounts of the embedded one.
func TestServerFileMatchesTheEmbeddedBroker(t *testing.T) {
	t.Parallel()
	c, err := newCredentials(3)
	if err != nil {
		t.Fatal(err)
	}
	for _, interval := range []time.Duration{0, 2 * time.Minute} {
		f := serverFile(t.TempDir())
		f.SyncInterval = interval
		external := parsed(t, f, c)
		both, err := newServerOptions(
			Config{
				DataDir: t.TempDir(), NATSAddr: "127.0.0.1:0", MQTTAddr: "127.0.0.1:0",
				MQTTTLS: &tls.Config{}, SyncInterval: interval,
			}.WithDefaults(),
			"127.0.0.1:0", installation{ServerName: "embedded", Shards: 3}, c, 100<<30,
		)
		if err != nil {
			t.Fatal(err)
		}
		embedded := both.hubs
		if got := external.TLSConfig.CipherSuites; !slices.Equal(got, streams.CipherSuites()) {
			t.Errorf("cipher suites: got %v, want those of the service", got)
		}
		for _, o := range []*server.Options{external, embedded} {
			o.MQTT.Host, o.MQTT.Port, o.MQTT.StreamReplicas = "", 0, 0
			o.MQTT.TLSConfig, o.MQTT.TLSTimeout, o.MQTT.JSAPITimeout = nil, 0, 0
		}
		if !reflect.DeepEqual(external.MQTT, embedded.MQTT) {
			t.Errorf("MQTT options: got %+v, embedded has %+v", external.MQTT, embedded.MQTT)
		}
		limits := func(o *server.Options) []any {
			return []any{
				o.MaxPayload, o.MaxPending, o.MaxConn, o.MaxClosedClients, o.AuthTimeout,
				o.SyncAlways, o.JetStreamMaxMemory, o.JetStreamMaxStore, o.SystemAccount,
				o.AuthCallout.Issuer, o.AuthCallout.Account, o.AuthCallout.AuthUsers, len(o.Users),
			}
		}
		if got, want := limits(external), limits(embedded); !reflect.DeepEqual(got, want) {
			t.Errorf("limits: got %v, embedded has %v", got, want)
		}
		if interval > 0 && external.SyncInterval != interval {
			t.Errorf("sync interval: got %v, want %v", external.SyncInterval, interval)
		}
		if got, want := accountNames(external), accountNames(embedded); !slices.Equal(got, want) {
			t.Errorf("accounts: got %v, embedded has %v", got, want)
		}
		durable := both.durable
		if got, want := accountNames(durable), []string{"CLOUD", "SYS"}; !slices.Equal(got, want) ||
			durable.AuthCallout != nil || durable.MQTT.Port != 0 ||
			durable.SyncAlways != external.SyncAlways ||
			durable.MaxPayload != external.MaxPayload || durable.MaxPending != external.MaxPending {
			t.Errorf("durable server: got accounts %v in %+v, want only %v, without hubs",
				got, durable, want)
		}
		if len(external.Routes) != 3 || external.Cluster.Password == "" ||
			!external.Cluster.NoAdvertise {
			t.Errorf(
				"cluster: got %+v with routes %v, want 3 routes with a password", external.Cluster,
				external.Routes,
			)
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

// TestServerFileHasNoSecrets checks that the configuration contains no seed and no password.
func TestServerFileHasNoSecrets(t *testing.T) {
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
			t.Errorf("the configuration contains the secret %q", secret)
		}
	}
	f.Nodes = []string{"a", "b", "c"}
	if again := f.RouteSecret([]byte(routes)); strings.Count(again, password) != 4 {
		t.Errorf("passwords of the routes to other nodes: got %s, want %s in all", again, password)
	}
}

func TestServerFileValidatesNodes(t *testing.T) {
	t.Parallel()
	for _, nodes := range [][]string{
		nil, {"a", "b"}, {"a", "b", "a"}, {"a:4222"}, {""}, {"a b"}, {"nats://a"}, {`a"`},
	} {
		if err := (ServerFile{Nodes: nodes}).Validate(); err == nil {
			t.Errorf("Validate with nodes %q: got nil, want an error", nodes)
		}
	}
	for _, nodes := range [][]string{{"a"}, {"::1"}, {"10.0.0.1", "10.0.0.2", "10.0.0.3"}} {
		if err := (ServerFile{Nodes: nodes}).Validate(); err != nil {
			t.Errorf("Validate with nodes %q: got %v, want nil", nodes, err)
		}
	}
}
