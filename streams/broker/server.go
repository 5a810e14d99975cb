package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"hubcloud/streams"
)

const (
	// calloutSubject is where the server asks, in the account CLOUD, who an MQTT client is.
	calloutSubject = server.AuthCalloutSubject
	// readyPoll is how often Start looks whether the listeners are there; they are when the server's own start returns, or never.
	readyPoll    = 50 * time.Millisecond
	readyTimeout = 5 * time.Second
	// undecidedTimeout bounds how long RefuseHubs waits for connections that are neither let in nor refused; whoever connects to the port and says
	// nothing is one of them.
	undecidedTimeout = time.Second
	undecidedPoll    = 5 * time.Millisecond
	// undecidedAccount is where the server has connections before it knows whose they are.
	undecidedAccount = server.DEFAULT_GLOBAL_ACCOUNT
)

// Server is a running broker. Its methods are safe for concurrent use.
type Server struct {
	server      *server.Server
	credentials streams.Credentials
	gate        *gate
	mqttAddr    string
	log         *slog.Logger
}

// Start starts the broker and returns when it takes connections: streams of former runs are there. It does not open the gate to hubs:
// that opens by itself when the auth callout is answered. ErrShards is returned for another number of shards than the installation's.
//
// ctx bounds the start only. The server's recovery of its streams cannot be broken off; a ctx that ends meanwhile is seen after it.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	if err := cfg.check(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(cfg.DataDir, 0o755); err != nil {
		return nil, err
	}
	settled, err := openInstallation(cfg.DataDir, cfg.Shards)
	if err != nil {
		return nil, err
	}
	credentials, err := openCredentials(cfg.DataDir, settled.Shards)
	if err != nil {
		return nil, err
	}
	store := filepath.Join(cfg.DataDir, storeFolder)
	used, err := measure(store)
	if err != nil {
		return nil, fmt.Errorf("measure the streams: %w", err)
	}
	maxStore, err := storageLimit(store, used.bytes)
	if err != nil {
		return nil, err
	}
	warnOfOpenFiles(cfg.Log, max(used.hubLogs, cfg.ExpectedHubs))
	opts, err := serverOptions(cfg, settled, credentials, maxStore)
	if err != nil {
		return nil, err
	}
	if !loopback(opts.Host) {
		cfg.Log.Warn("the NATS listener is open to other machines and has no TLS: passwords and data pass in the clear", "nats", cfg.NATSAddr)
	}
	s := &Server{credentials: credentials, log: cfg.Log}
	if err := s.run(ctx, cfg, opts); err != nil {
		return nil, errors.Join(err, s.Close(context.WithoutCancel(ctx)))
	}
	s.sayDurability(cfg.SyncInterval)
	cfg.Log.Info("broker started", "mqtt", s.mqttAddr, "nats", s.NATSAddr(), "shards", settled.Shards, "hub_logs", used.hubLogs,
		"storage_bytes", used.bytes, "storage_limit_bytes", maxStore)
	return s, nil
}

// run starts the server and waits until it is ready. After an error Close is due.
func (s *Server) run(ctx context.Context, cfg Config, opts *server.Options) error {
	s.gate = newGate(s.calloutAnswered)
	opts.MQTT.TLSConfig = s.gate.guard(cfg.MQTTTLS)
	var err error
	if s.server, err = server.NewServer(opts); err != nil {
		return err
	}
	lines := newLogger(cfg.Log)
	s.server.SetLoggerV2(lines, false, false, false)
	s.server.Start()
	if err := s.awaitReady(ctx, lines.fatal); err != nil {
		return err
	}
	// The server puts the port that it bound where the wish was.
	s.mqttAddr = net.JoinHostPort(opts.MQTT.Host, strconv.Itoa(opts.MQTT.Port))
	s.credentials.URL = "nats://" + s.NATSAddr()
	if err := s.credentials.Write(filepath.Join(cfg.DataDir, credentialsFile)); err != nil {
		return err
	}
	conns, err := s.Connect(ctx)
	if err != nil {
		return err
	}
	defer conns.Close()
	if err := RefuseRetained(ctx, conns, 1); err != nil {
		return err
	}
	if cfg.Metrics != nil {
		return cfg.Metrics.Register(newCollector(s.server))
	}
	return nil
}

func (s *Server) awaitReady(ctx context.Context, fatal <-chan string) error {
	for deadline := time.Now().Add(readyTimeout); ; {
		ready := s.server.ReadyForConnections(readyPoll)
		select {
		case line := <-fatal:
			return errors.New(line)
		default:
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case ready:
			return nil
		case time.Now().After(deadline):
			return errors.New("the server does not listen")
		}
	}
}

func (s *Server) sayDurability(interval time.Duration) {
	if interval == 0 {
		s.log.Debug("what is acknowledged is synced to disk before")
		return
	}
	s.log.Warn("what is acknowledged is synced to disk only now and then: a power cut can lose the last of it, a crash of the service cannot",
		"sync_interval", interval.String())
}

// calloutAnswered says whether somebody has subscribed to the callout's requests.
func (s *Server) calloutAnswered() bool {
	if s.server == nil {
		return false
	}
	account, err := s.server.LookupAccount(string(streams.AccountCloud))
	return err == nil && account.SubscriptionInterest(calloutSubject)
}

// Credentials says how to reach the broker's accounts. They are the same over restarts, but for the address.
func (s *Server) Credentials() streams.Credentials { return s.credentials }

// Connect connects to every account within the process, without a socket.
func (s *Server) Connect(ctx context.Context) (*streams.Conns, error) {
	return streams.Connect(ctx, s.credentials, nats.InProcessServer(s.server), streams.WithLog(s.log))
}

// NATSAddr is the address that the NATS listener bound, host:port.
func (s *Server) NATSAddr() string { return s.server.Addr().String() }

// MQTTAddr is the address that the MQTT listener bound, host:port. The host is a wildcard address when it listens on all.
func (s *Server) MQTTAddr() string { return s.mqttAddr }

// ServerID is the server's id of this run: events and requests of the account SYS carry it.
func (s *Server) ServerID() string { return s.server.ID() }

// RefuseHubs lets no more hubs in and returns when those that were coming in are in or refused, ctx ends, or a second is over. It is due before
// whoever answers the auth callout stops: a hub whose question nobody answers holds up Close for as long as the server waits for the answer.
func (s *Server) RefuseHubs(ctx context.Context) {
	s.gate.close()
	// Nats-server 2.15 takes its system account away at the beginning of a shutdown, and a callout that begins after that ends the process:
	// this waits for connections that may be about to.
	account, err := s.server.LookupAccount(undecidedAccount)
	if err != nil {
		return // the server did not get that far
	}
	ctx, cancel := context.WithTimeout(ctx, undecidedTimeout)
	defer cancel()
	ticker := time.NewTicker(undecidedPoll)
	defer ticker.Stop()
	for account.NumLocalConnections() > 0 {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// Close refuses hubs as RefuseHubs does, ends every connection, writes what is to be written, and stops the server. It returns ctx's error
// when ctx ends before that; the server then goes on stopping. It may be called more than once.
func (s *Server) Close(ctx context.Context) error {
	if s.server == nil {
		s.gate.close()
		return nil
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		s.RefuseHubs(ctx)
		s.server.Shutdown()
		s.server.WaitForShutdown()
	}()
	select {
	case <-stopped:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
