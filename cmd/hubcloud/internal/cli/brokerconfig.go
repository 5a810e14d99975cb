package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"hubcloud/cmd/hubcloud/internal/installation"
	"hubcloud/cmd/hubcloud/internal/server"
	"hubcloud/domain"
	"hubcloud/hubbridge/identity"
	"hubcloud/streams/broker"
	"hubcloud/streams/disk"
)

// brokerConfigCommand writes the files that the nats-servers of an external broker need.
type brokerConfigCommand struct {
	outputFlags
	Out    string   `help:"Folder for the configuration, the certificates and the credentials. All files are readable by their owner only." required:"" type:"path" placeholder:"DIR"`
	Nodes  []string `help:"Host names or addresses of the servers for each other and for the service: 1, 3 or 5, separated by commas." required:"" name:"nodes" sep:"," placeholder:"HOST"`
	Hosts  []string `help:"Further names for the servers' certificate: the names under which hubs reach --mqtt-port." name:"mqtt-hosts" sep:"," placeholder:"HOST"`
	Shards int      `help:"Number of broker accounts that hold the hub logs, 1 to 256, fixed when the installation is created. Use 8 for up to 20,000 hubs, 16 for up to 50,000, 64 for more: in a cluster each takes about 0.4 % of a core of every server. 0 keeps the number in --out; a new cluster gets 8, a new single server 16." default:"0"`
	Sync   string   `help:"When a write is synced to disk: \"always\", before it is acknowledged, survives a power cut; an interval such as 2m is faster and survives only a crash of a server." default:"always"`

	Cluster    string `help:"Name of the cluster." default:"hubcloud" group:"Servers"`
	Listen     string `help:"Address that the servers listen on." default:"0.0.0.0" group:"Servers"`
	ClientPort int    `help:"Port for the service." default:"4222" group:"Servers"`
	RoutePort  int    `help:"Port for the other servers." default:"6222" group:"Servers"`
	MQTTPort   int    `help:"Port for hubs." default:"8883" name:"mqtt-port" group:"Servers"`
	Monitor    string `help:"HOST:PORT for each server's health and statistics, without a password; empty for none." default:"127.0.0.1:8222" group:"Servers"`
	Etc        string `help:"Folder on the servers for the files of --out." default:"/etc/nats" group:"Servers"`
	Store      string `help:"Folder on the servers for the streams." default:"/var/lib/nats" group:"Servers"`
	MaxStore   string `help:"Most disk space for a server's streams, such as 100GB. Defaults to three quarters of the free space." placeholder:"SIZE" group:"Servers"`

	CACert string `help:"Certificate (PEM) of the authority that signs the certificates of the broker and the hubs. By default the command creates an authority in --out/ca." placeholder:"FILE" name:"ca-cert" type:"path" group:"Certificates"`
	CAKey  string `help:"Key (PEM) of --ca-cert." placeholder:"FILE" name:"ca-key" type:"path" group:"Certificates"`
	CAAlso string `help:"Certificates (PEM) of further authorities whose hubs the servers accept, for the time in which one authority replaces another." placeholder:"FILE" name:"ca-also" type:"path" group:"Certificates"`
}

// Validate checks the flags. The flag parser calls it.
func (c *brokerConfigCommand) Validate() error {
	if (c.CACert == "") != (c.CAKey == "") {
		return errors.New("--ca-cert and --ca-key need each other")
	}
	for _, f := range []struct {
		name string
		port int
	}{
		{"client-port", c.ClientPort}, {"route-port", c.RoutePort}, {"mqtt-port", c.MQTTPort},
	} {
		if f.port < 1 || f.port > 65535 {
			return fmt.Errorf("--%s %d: must be 1 to 65535", f.name, f.port)
		}
	}
	if c.Monitor != "" && installation.CheckAddress(c.Monitor) != nil {
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

// file returns the configuration file as the flags describe it.
func (c *brokerConfigCommand) file() broker.ServerFile {
	interval, _ := server.ParseSync(c.Sync) // Validate has checked it
	return broker.ServerFile{
		Nodes: c.Nodes, Cluster: c.Cluster, Listen: c.Listen, ClientPort: c.ClientPort,
		RoutePort: c.RoutePort, MQTTPort: c.MQTTPort,
		Monitor: c.Monitor, Folder: c.Etc, Store: c.Store, MaxStore: c.MaxStore,
		SyncInterval: interval,
	}
}

// Run writes the files and prints the configuration.
func (c *brokerConfigCommand) Run(out Output) error {
	if err := os.MkdirAll(c.Out, 0o700); err != nil {
		return err
	}
	authority, err := identity.OpenAuthority(identity.AuthorityConfig{
		Dir: c.path("ca"), CertificateFile: c.CACert, KeyFile: c.CAKey, AlsoFile: c.CAAlso,
		Hosts:  append(c.Nodes, c.Hosts...),
		Logger: textLogger(out, slog.LevelInfo),
	})
	if err != nil {
		return fmt.Errorf("certificate authority: %w", err)
	}
	file := c.file()
	credentials, err := file.Credentials(c.Out, c.Shards, authority.CAPEM())
	if errors.Is(err, broker.ErrShards) {
		return installation.Usagef("--shards: %w", err)
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
	if err := credentials.Write(c.path(installation.CredentialsFile)); err != nil {
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
		if err := disk.Write(c.path(name), content, 0o600); err != nil {
			return err
		}
	}
	// The password stays the same: servers with different ones cannot connect, and the operator
	// does not update all of them at the same moment.
	former, err := os.ReadFile(c.path(broker.RouteSecretName))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return disk.Write(
		c.path(broker.RouteSecretName), []byte(c.file().RouteSecret(former)), 0o600,
	)
}

// report prints the configuration to standard output, and where the files are to standard error.
func (c *brokerConfigCommand) report(out Output, text string, expires time.Time) error {
	if c.JSON {
		return c.print(
			out.Out, field{"config", c.path(broker.ServerFileName)},
			field{"credentials", c.path(installation.CredentialsFile)},
			field{"nats_url", c.file().URL()},
			field{"certificate_expires_at", domain.FormatTime(expires)},
		)
	}
	if _, err := fmt.Fprint(out.Out, text); err != nil {
		return err
	}
	_, err := fmt.Fprintf(
		out.Err,
		"Written to %s. The servers' certificate expires on %s: run this command again before, "+
			"and reload the servers.\nServe with --nats-url %s --nats-credentials %s\n",
		c.Out,
		expires.Format(time.DateOnly),
		c.file().URL(),
		c.path(installation.CredentialsFile),
	)
	return err
}

// path returns the path of a file in --out.
func (c *brokerConfigCommand) path(name string) string { return filepath.Join(c.Out, name) }
