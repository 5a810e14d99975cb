package sim

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"hubcloud/hubbridge/identity"
	"hubcloud/streams"
	"hubcloud/streams/broker"
)

const (
	clientPort = 4222
	routePort  = 6222
	mqttPort   = 8883
)

// brokerHosts are the hosts of the nats-servers.
var brokerHosts = []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"}

// Brokers is a cluster of three nats-servers with the configuration that `hubcloud broker-config`
// writes: TLS, synced writes, three copies.
type Brokers struct {
	t           testing.TB
	network     *Network
	trace       *Trace
	dir         string
	stores      map[string]string // the folder of each host's streams
	disks       sync.Map          // what is wrong with the disk of each host: an error or a time
	synced      sync.Map          // of each file of messages, its os.FileInfo when it was synced last
	file        broker.ServerFile
	running     map[string]*server.Server
	Authority   *identity.Authority
	Credentials streams.Credentials
}

// NewBrokers writes the files of a cluster. Call it in the bubble, whose clock says when the
// certificates are valid.
func NewBrokers(t testing.TB, network *Network, trace *Trace, shards int) *Brokers {
	t.Helper()
	b := &Brokers{
		t: t, network: network, trace: trace, dir: t.TempDir(), running: map[string]*server.Server{},
		stores: map[string]string{},
	}
	for _, host := range brokerHosts {
		b.stores[host] = t.TempDir()
	}
	b.file = broker.ServerFile{
		Nodes: brokerHosts, Cluster: "hubcloud", ClientPort: clientPort, RoutePort: routePort,
		MQTTPort: mqttPort, Folder: b.dir, MaxStore: "10GB",
	}
	var err error
	b.Authority, err = identity.OpenAuthority(identity.AuthorityConfig{
		Dir: filepath.Join(b.dir, "ca"), Hosts: brokerHosts, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	node, err := b.Authority.IssueNode()
	if err != nil {
		t.Fatal(err)
	}
	b.Credentials, err = b.file.Credentials(b.dir, shards, b.Authority.CAPEM())
	if err != nil {
		t.Fatal(err)
	}
	b.write(broker.AuthorityName, b.Authority.CAPEM())
	b.write(broker.CertificateName, node.Certificate)
	b.write(broker.KeyName, node.Key)
	b.write(broker.RouteSecretName, []byte(b.file.RouteSecret(nil)))
	server.SimListen = network.Listen
	server.SimDial = func(from, address string, timeout time.Duration) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		return network.Dial(ctx, from, address)
	}
	server.SimWrite = b.written
	server.SimSynced = func(file string, _ int64) {
		if info, err := os.Stat(file); err == nil {
			b.synced.Store(file, info)
		}
	}
	return b
}

// SlowDisk lets each write to a host's streams take a time.
func (b *Brokers) SlowDisk(host string, by time.Duration) { b.disks.Store(host, by) }

// FillDisk lets each write to a host's streams fail, until there is room again.
func (b *Brokers) FillDisk(host string, full bool) {
	b.disks.Delete(host)
	if full {
		b.disks.Store(host, syscall.ENOSPC)
	}
}

// written is called before a server writes to a stream, or to the log of its group.
func (b *Brokers) written(host string) error {
	switch wrong, _ := b.disks.Load(host); wrong := wrong.(type) {
	case time.Duration:
		time.Sleep(wrong)
	case error:
		return wrong
	}
	return nil
}

func (b *Brokers) write(name string, content []byte) {
	if err := os.WriteFile(filepath.Join(b.dir, name), content, 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// Start starts the server of a host, also after Kill.
func (b *Brokers) Start(host string) {
	b.t.Helper()
	b.network.Boot(host)
	for name, info := range b.messageFiles(b.stores[host]) {
		b.synced.Store(filepath.Join(b.stores[host], name), info)
	}
	file := b.file
	file.Listen, file.Store = host, b.stores[host]
	text, err := file.Text(b.Credentials)
	if err != nil {
		b.t.Fatal(err)
	}
	b.write(host+".conf", []byte(text))
	if err := os.Setenv(broker.ServerNameVariable, host); err != nil {
		b.t.Fatal(err)
	}
	options, err := server.ProcessConfigFile(filepath.Join(b.dir, host+".conf"))
	if err != nil {
		b.t.Fatal(err)
	}
	options.NoSigs = true
	s, err := server.NewServer(options)
	if err != nil {
		b.t.Fatal(err)
	}
	s.SetLoggerV2(brokerLog{host, b.trace}, false, false, false)
	b.running[host] = s
	s.Start()
}

// Kill ends the server of a host. Its disk keeps what was written by now, and nothing that an
// orderly shutdown writes; after a power cut only the messages that were synced. No other goroutine
// may call synctest.Wait.
func (b *Brokers) Kill(host string, powerCut bool) {
	b.t.Helper()
	b.network.Kill(host)
	synctest.Wait()
	now := b.t.TempDir()
	if err := os.CopyFS(now, os.DirFS(b.stores[host])); err != nil {
		b.t.Fatal(err)
	}
	if powerCut {
		b.forget(b.stores[host], now)
	}
	b.stores[host] = now
	b.stop(host)
}

// forget removes from a copy of a store what was appended to files of messages since they were synced.
// It leaves new files as they are: those that replace others are synced before they get the name.
func (b *Brokers) forget(store, now string) {
	forgotten := 0
	for name, info := range b.messageFiles(store) {
		synced, ok := b.synced.Load(filepath.Join(store, name))
		if !ok || !os.SameFile(synced.(os.FileInfo), info) || synced.(os.FileInfo).Size() >= info.Size() {
			continue
		}
		forgotten++
		if err := os.Truncate(filepath.Join(now, name), synced.(os.FileInfo).Size()); err != nil {
			b.t.Fatal(err)
		}
	}
	b.trace.Add("FAULT", fmt.Sprintf("%d files of messages are shorter", forgotten))
}

// messageFiles returns the files of messages in a store.
func (b *Brokers) messageFiles(store string) map[string]os.FileInfo {
	b.t.Helper()
	files := map[string]os.FileInfo{}
	err := fs.WalkDir(os.DirFS(store), ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(name) == ".blk" {
			files[name], err = entry.Info()
		}
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return files
}

// Leaderless returns a stream that a server knows no leader of, "" if there is none.
func (b *Brokers) Leaderless() (string, error) {
	for _, host := range brokerHosts {
		info, err := b.running[host].Jsz(&server.JSzOptions{Accounts: true, Streams: true})
		if err != nil {
			return "", err
		}
		if info.Meta == nil || info.Meta.Leader == "" {
			return "the meta group at " + host, nil
		}
		for _, account := range info.AccountDetails {
			for _, stream := range account.Streams {
				if stream.Cluster != nil && stream.Cluster.Leader == "" {
					return fmt.Sprintf("%s of %s at %s", stream.Name, account.Name, host), nil
				}
			}
		}
	}
	return "", nil
}

func (b *Brokers) stop(host string) {
	s := b.running[host]
	delete(b.running, host)
	s.Shutdown()
	s.WaitForShutdown()
}

// Stop ends all servers.
func (b *Brokers) Stop() {
	for _, host := range brokerHosts {
		if b.running[host] != nil {
			b.stop(host)
		}
	}
}

// brokerLog writes a server's log to the trace.
type brokerLog struct {
	host  string
	trace *Trace
}

func (l brokerLog) line(format string, v []any) {
	l.trace.Add("broker "+l.host, fmt.Sprintf(format, v...))
}

// The methods of server.Logger.
func (l brokerLog) Noticef(format string, v ...any) { l.line(format, v) }
func (l brokerLog) Warnf(format string, v ...any)   { l.line("WARN "+format, v) }
func (l brokerLog) Errorf(format string, v ...any)  { l.line("ERROR "+format, v) }
func (l brokerLog) Fatalf(format string, v ...any)  { l.line("FATAL "+format, v) }
func (l brokerLog) Debugf(string, ...any)           {}
func (l brokerLog) Tracef(string, ...any)           {}
