package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"hubcloud/cmd/hubcloud/internal/address"
	"hubcloud/cmd/hubcloud/internal/server"
	"hubcloud/cmd/hubcloud/internal/usage"
	"hubcloud/domain"
	"hubcloud/hubbridge/identity"
	"hubcloud/streams/broker"
	"hubcloud/streams/durablefile"
)

// brokerConfigCommand writes what nats-servers of one's own need.
type brokerConfigCommand struct {
	outputFlags
	Out    string   `help:"Folder for the files: the configuration, the certificates, the credentials. Files with secrets are readable by their owner only." required:"" type:"path" placeholder:"DIR"`
	Nodes  []string `help:"Host name or address of each server, as the others and the service reach it: one, 3 or 5, separated by commas." required:"" name:"nodes" sep:"," placeholder:"HOST"`
	Hosts  []string `help:"More names for the servers' certificate: those under which hubs reach --mqtt-port." name:"mqtt-hosts" sep:"," placeholder:"HOST"`
	Shards int      `help:"Accounts over which the hub logs are spread, fixed when the installation is made: 16 up to 50,000 hubs, 64 above; 0 for as many as the credentials in --out have, 16 in new ones." default:"0"`
	Sync   string   `help:"When a write counts as stored: \"always\" survives a power cut; a time such as 2m survives only a crash of a server, and is faster." default:"always"`

	Cluster    string `help:"Name of the cluster." default:"hubcloud" group:"Servers"`
	Listen     string `help:"Address that the servers listen on." default:"0.0.0.0" group:"Servers"`
	ClientPort int    `help:"Port for the service." default:"4222" group:"Servers"`
	RoutePort  int    `help:"Port for the other servers." default:"6222" group:"Servers"`
	MQTTPort   int    `help:"Port for hubs." default:"8883" name:"mqtt-port" group:"Servers"`
	Monitor    string `help:"HOST:PORT of each server's own health and figures, which need no password; empty for none." default:"127.0.0.1:8222" group:"Servers"`
	Etc        string `help:"Where the files of --out lie on the servers." default:"/etc/nats" group:"Servers"`
	Store      string `help:"Where the servers keep streams." default:"/var/lib/nats" group:"Servers"`
	MaxStore   string `help:"What a server's streams may take, such as 100GB; three quarters of the free disk when not given." placeholder:"SIZE" group:"Servers"`

	CACert string `help:"Certificate (PEM) of the authority that signs the broker's and the hubs' certificates; made in --out/ca when not given." placeholder:"FILE" name:"ca-cert" type:"path" group:"Certificates"`
	CAKey  string `help:"Its key (PEM)." placeholder:"FILE" name:"ca-key" type:"path" group:"Certificates"`
	CAAlso string `help:"Certificates (PEM) of further authorities, while one takes the place of another: the servers let in hubs with certificates of theirs, too." placeholder:"FILE" name:"ca-also" type:"path" group:"Certificates"`
}

// Help is the long form of --help.
func (c *brokerConfigCommand) Help() string {
	return `Prints the configuration of nats-server for a broker of one's own, a cluster of three for instance, and writes it to --out with what belongs to it:

  nats.conf              the configuration, the same for every server; each has its name in the environment variable NATS_SERVER_NAME
  routes.conf            the password of the routes between the servers
  ca.pem, broker.pem, broker-key.pem   the authority, and the servers' certificate with its key
  nats-credentials.json  for the service: --nats-credentials
  ca/                    the authority with its key, for the service: --ca-cert and --ca-key

Copy the first five to --etc on every server, and the last two to where the service runs. Secrets are in those files only and never outputFlags.

Run it again whenever something changes: passwords and the authority stay, the certificate is made anew, for a year. The servers take in a new
certificate without a restart: nats-server --signal reload=PID.

Example:

  hubcloud broker-config --nodes nats-1,nats-2,nats-3 --mqtt-hosts hubs.example.org --out ./broker
  hubcloud serve --nats-url tls://nats-1:4222,tls://nats-2:4222,tls://nats-3:4222 --nats-credentials ./broker/nats-credentials.json \
      --ca-cert ./broker/ca/ca.pem --ca-key ./broker/ca/ca-key.pem --public-mqtt hubs.example.org:8883 --log-replicas 3 --postgres-url …`
}

// Validate checks what the flags say together; kong calls it once they are parsed.
func (c *brokerConfigCommand) Validate() error {
	if (c.CACert == "") != (c.CAKey == "") {
		return errors.New("--ca-cert and --ca-key go together")
	}
	for name, port := range map[string]int{
		"client-port": c.ClientPort, "route-port": c.RoutePort, "mqtt-port": c.MQTTPort,
	} {
		if port < 1 || port > 65535 {
			return fmt.Errorf("--%s %d: 1 to 65535", name, port)
		}
	}
	if c.Monitor != "" && address.Check(c.Monitor) != nil {
		return fmt.Errorf("--monitor %q: must be HOST:PORT", c.Monitor)
	}
	if err := server.ValidateShards(c.Shards); err != nil {
		return err
	}
	if _, err := server.ParseSync(c.Sync); err != nil {
		return err
	}
	if err := c.file().Validate(); err != nil {
		return fmt.Errorf("--nodes: %w", err)
	}
	return nil
}

func (c *brokerConfigCommand) file() broker.ServerFile {
	interval, _ := server.ParseSync(c.Sync) // Validate has seen it
	return broker.ServerFile{
		Nodes: c.Nodes, Cluster: c.Cluster, Listen: c.Listen, ClientPort: c.ClientPort,
		RoutePort: c.RoutePort, MQTTPort: c.MQTTPort,
		Monitor: c.Monitor, Folder: c.Etc, Store: c.Store, MaxStore: c.MaxStore,
		SyncInterval: interval,
	}
}

// Run writes the files, and prints the configuration.
func (c *brokerConfigCommand) Run(out Streams) error {
	if err := os.MkdirAll(c.Out, 0o700); err != nil {
		return err
	}
	authority, err := identity.OpenAuthority(identity.AuthorityConfig{
		Dir: c.path("ca"), CertificateFile: c.CACert, KeyFile: c.CAKey, AlsoFile: c.CAAlso,
		Hosts: append(c.Nodes, c.Hosts...),
		Log:   slog.New(slog.NewTextHandler(out.Err, nil)),
	})
	if err != nil {
		return fmt.Errorf("certificate authority: %w", err)
	}
	file := c.file()
	credentials, err := file.Credentials(c.Out, c.Shards, authority.CAPEM())
	if errors.Is(err, broker.ErrShards) {
		return usage.Errorf("--shards: %w", err)
	}
	if err != nil {
		return err
	}
	text, err := file.Text(credentials)
	if err != nil {
		return err
	}
	node, err := authority.IssueNode()
	if err != nil {
		return err
	}
	if err := credentials.Write(c.path("nats-credentials.json")); err != nil {
		return err
	}
	if err := c.write(text, authority.CAPEM(), node); err != nil {
		return err
	}
	return c.report(out, text, node.ExpiresAt)
}

// write writes the servers' files.
func (c *brokerConfigCommand) write(
	text string, authority []byte, node identity.NodeCertificate,
) error {
	for name, content := range map[string][]byte{
		broker.ServerFileName: []byte(text), broker.AuthorityName: authority,
		broker.CertificateName: node.Certificate, broker.KeyName: node.Key,
	} {
		if err := durablefile.Write(c.path(name), content, 0o600); err != nil {
			return err
		}
	}
	// The password stays: servers with different ones do not know each other, and they are not all
	// told at the same moment.
	former, err := os.ReadFile(c.path(broker.RouteSecretName))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return durablefile.Write(
		c.path(broker.RouteSecretName), []byte(c.file().RouteSecret(former)), 0o600,
	)
}

// report prints the configuration for a pipe and for people, and beside it what was written.
func (c *brokerConfigCommand) report(out Streams, text string, expires time.Time) error {
	if c.JSON {
		return c.print(
			out.Out,
			field{
				"config",
				c.path(broker.ServerFileName),
			},
			field{"credentials", c.path("nats-credentials.json")},
			field{
				"nats_url",
				c.file().URL(),
			},
			field{"certificate_expires_at", domain.FormatTime(expires)},
		)
	}
	if _, err := fmt.Fprint(out.Out, text); err != nil {
		return err
	}
	_, err := fmt.Fprintf(
		out.Err,
		"Written to %s. The servers' certificate ends on %s: run this again before, and reload "+
			"the servers.\nServe with --nats-url %s --nats-credentials %s\n",
		c.Out,
		expires.Format(time.DateOnly),
		c.file().URL(),
		c.path("nats-credentials.json"),
	)
	return err
}

func (c *brokerConfigCommand) path(name string) string { return filepath.Join(c.Out, name) }
