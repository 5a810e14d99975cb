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
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"golang.org/x/sync/errgroup"

	"hubcloud/streams"
)

const (
	// calloutSubject is the subject, in the account CLOUD, of the auth callout.
	calloutSubject = server.AuthCalloutSubject
	// readyPoll is the pause between two checks whether the listeners are open. They open when the
	// server's own start returns, or never.
	readyPoll    = 50 * time.Millisecond
	readyTimeout = 5 * time.Second
	// closeTimeout is how long a restart waits for the failed server to stop.
	closeTimeout = time.Minute
)

// Server is a running broker: two NATS servers. Its methods are safe for concurrent use.
type Server struct {
	cfg         Config
	store       string
	options     func() (serverOptions, error)
	credentials streams.Credentials
	logger      *slog.Logger
	faults      *faults
	// maxConnections is the limit of connections. pendingClosed counts the pending connections
	// closed because of it.
	maxConnections int
	pendingClosed  atomic.Int64

	// violationLines are the violations that the server has logged, and violations are the
	// same, with the hub resolved.
	violationLines chan violationLine
	violations     chan Violation

	// current is the run that accepts connections; nil before the first run and between two runs.
	current atomic.Pointer[run]

	// stop ends the loops that recover the server and evict connections. loops waits for them.
	stop  context.CancelFunc
	loops sync.WaitGroup

	mu sync.Mutex
	// last is the most recently started run. Close ends it.
	last *run
	// mqttAddr, natsAddr and durableAddr are the addresses bound by the first run. Later runs bind
	// the same.
	mqttAddr, natsAddr, durableAddr string
}

// run is one run of the NATS servers. A Server starts another one after a failed write of either.
type run struct {
	// hubs is the server for hubs, durable the one with the account CLOUD.
	hubs, durable *server.Server
	handshakes    *handshakes
}

// servers returns both servers in the order in which they stop: a pending connection of a hub needs
// the directory.
func (r *run) servers() []*server.Server { return []*server.Server{r.hubs, r.durable} }

// Start starts the broker and returns once it accepts connections and has recovered its streams.
// Hubs are admitted once the auth callout is answered. Start returns ErrShards if cfg.Shards is not
// the installation's number of shards.
//
// ctx limits the start only. The recovery of streams cannot be interrupted: if ctx ends during it,
// Start returns afterwards.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(cfg.DataDir, 0o755); err != nil {
		return nil, err
	}
	made, err := openInstallation(cfg.DataDir, cfg.Shards)
	if err != nil {
		return nil, err
	}
	credentials, err := openCredentials(cfg.DataDir, made.Shards)
	if err != nil {
		return nil, err
	}
	store := filepath.Join(cfg.DataDir, storeFolder)
	used, err := measure(cfg.DataDir)
	if err != nil {
		return nil, fmt.Errorf("measure the streams: %w", err)
	}
	maxStore, err := storageLimit(store)
	if err != nil {
		return nil, err
	}
	warnOfOpenFiles(cfg.Logger, max(used.hubLogs, cfg.ExpectedHubs))
	s := &Server{
		cfg:            cfg,
		store:          store,
		credentials:    credentials,
		logger:         cfg.Logger,
		faults:         newFaults(),
		violationLines: make(chan violationLine, violationQueue),
		violations:     make(chan Violation, violationQueue),
		maxConnections: cfg.maxConnections(made.Shards),
		durableAddr:    durableAddr(credentials.CloudURL),
	}
	s.options = func() (serverOptions, error) {
		return newServerOptions(s.cfg, s.durableAddr, made, credentials, maxStore)
	}
	opts, err := s.options()
	if err != nil {
		return nil, err
	}
	if !loopback(opts.hubs.Host) {
		cfg.Logger.Warn(
			"the NATS listener can be reached from other machines without TLS; passwords and data "+
				"are not encrypted",
			"nats", cfg.NATSAddr,
		)
	}
	if err := s.beginFirst(ctx, opts); err != nil {
		return nil, errors.Join(err, s.Close(context.WithoutCancel(ctx)))
	}
	if err := s.finishStart(); err != nil {
		return nil, errors.Join(err, s.Close(context.WithoutCancel(ctx)))
	}
	if err := s.syncAllFolders(); err != nil {
		return nil, errors.Join(err, s.Close(context.WithoutCancel(ctx)))
	}
	s.logDurability(cfg.SyncInterval)
	cfg.Logger.Info(
		"broker started", "mqtt", s.mqttAddr, "nats", s.natsAddr, "shards", made.Shards,
		"hub_logs", used.hubLogs, "storage_bytes", used.bytes, "storage_limit_bytes", maxStore,
	)
	return s, nil
}

// finishStart writes the credentials with the bound address, registers the metrics and starts the
// loops.
func (s *Server) finishStart() error {
	if err := s.credentials.Write(filepath.Join(s.cfg.DataDir, credentialsFile)); err != nil {
		return err
	}
	if s.cfg.Metrics != nil {
		if err := s.cfg.Metrics.Register(newCollector(s)); err != nil {
			return err
		}
	}
	var ctx context.Context
	ctx, s.stop = context.WithCancel(context.Background())
	s.loops.Go(func() { s.recover(ctx) })
	s.loops.Go(func() { s.resolveViolations(ctx) })
	s.loops.Go(func() { s.evictPending(ctx, s.maxConnections) })
	return nil
}

// beginFirst is begin for the first run. If another program has taken the port of the durable
// server meanwhile, beginFirst tries again with any port.
func (s *Server) beginFirst(ctx context.Context, opts serverOptions) error {
	err := s.begin(ctx, opts)
	// nats-server says that it cannot listen with text that contains the address. Whether the
	// address is free now says nothing: the other program may have used it for a moment only.
	if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), s.durableAddr) {
		return err
	}
	if closing := s.Close(context.WithoutCancel(ctx)); closing != nil {
		return errors.Join(err, closing)
	}
	s.durableAddr = anyPort
	if opts, err = s.options(); err != nil {
		return err
	}
	return s.begin(ctx, opts)
}

// begin repairs the stores, starts the servers on them and accepts connections once both are ready.
// After an error the caller must call Close.
func (s *Server) begin(ctx context.Context, opts serverOptions) error {
	err := removeProbes(s.store)
	for _, store := range stores(s.cfg.DataDir) {
		err = errors.Join(err, Repair(store, s.logger))
	}
	if err != nil {
		return err
	}
	next := &run{}
	next.handshakes = newHandshakes(next.calloutAnswered, s.cfg.Pause)
	opts.hubs.MQTT.TLSConfig = next.handshakes.guard(s.cfg.MQTTTLS)
	if next.durable, err = server.NewServer(opts.durable); err == nil {
		next.hubs, err = server.NewServer(opts.hubs)
	}
	if err != nil {
		next.handshakes.close()
		return err
	}
	s.mu.Lock()
	s.last = next
	s.mu.Unlock()
	starts, starting := errgroup.WithContext(ctx)
	for _, each := range next.servers() {
		starts.Go(func() error { return s.startServer(starting, each) })
	}
	if err := starts.Wait(); err != nil {
		return err
	}
	s.mu.Lock()
	// The server replaces the requested port by the bound one.
	s.mqttAddr = net.JoinHostPort(opts.hubs.MQTT.Host, strconv.Itoa(opts.hubs.MQTT.Port))
	s.natsAddr, s.durableAddr = next.hubs.Addr().String(), next.durable.Addr().String()
	// Later runs bind the same addresses.
	s.cfg.MQTTAddr, s.cfg.NATSAddr = s.mqttAddr, s.natsAddr
	if url := "nats://" + s.natsAddr; s.credentials.URL != url {
		s.credentials.URL = url
	}
	if url := "nats://" + s.durableAddr; s.credentials.CloudURL != url {
		s.credentials.CloudURL = url
	}
	s.mu.Unlock()
	conns, err := streams.ConnectInProcess(
		ctx, s.credentials, next.hubs, next.durable, streams.WithLog(s.logger),
	)
	if err != nil {
		return err
	}
	defer conns.Close()
	if err := DeclareMQTTStreams(ctx, conns, 1); err != nil {
		return err
	}
	s.current.Store(next)
	return nil
}

// startServer starts one of the servers and waits until it is ready.
func (s *Server) startServer(ctx context.Context, started *server.Server) error {
	log := newServerLogger(s.logger.With("server", started.Name()), s.faults, s.note)
	started.SetLoggerV2(log, false, false, false)
	started.Start()
	return awaitReady(ctx, started, log.fatal)
}

func awaitReady(ctx context.Context, started *server.Server, fatal <-chan string) error {
	for deadline := time.Now().Add(readyTimeout); ; {
		ready := started.ReadyForConnections(readyPoll)
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
			return errors.New("the server did not open its listeners in time")
		}
	}
}

// logDurability logs what SyncInterval means for acknowledged messages.
func (s *Server) logDurability(interval time.Duration) {
	if interval == 0 {
		s.logger.Debug("every write is synced to disk before it is acknowledged")
		return
	}
	s.logger.Warn(
		"writes are synced to disk at intervals: a power cut can lose acknowledged messages, "+
			"a crash of the service cannot",
		"sync_interval", interval.String(),
	)
}

// calloutAnswered reports whether the auth callout has a subscriber.
func (r *run) calloutAnswered() bool {
	if r.hubs == nil {
		return false
	}
	account, err := r.hubs.LookupAccount(string(streams.AccountCloud))
	return err == nil && account.SubscriptionInterest(calloutSubject)
}

// HasSubscribers reports whether a message to a subject of an account, which is not the cloud's
// own, has subscribers at this moment: in the account, or in one that imports the subject. While
// the server is down, it is true.
func (s *Server) HasSubscribers(account streams.Account, subject string) bool {
	r := s.current.Load()
	if r == nil || r.hubs == nil {
		return true
	}
	found, err := r.hubs.LookupAccount(string(account))
	return err != nil || found.SubscriptionInterest(subject)
}

// Credentials returns the logins of the broker's accounts. Only the addresses change over restarts.
func (s *Server) Credentials() streams.Credentials { return s.credentials }

// Connect returns connections to all accounts, within the process and without sockets. They survive
// a restart of the servers.
func (s *Server) Connect(ctx context.Context) (*streams.Conns, error) {
	hubs := inProcess{s, func(r *run) *server.Server { return r.hubs }}
	durable := inProcess{s, func(r *run) *server.Server { return r.durable }}
	return streams.ConnectInProcess(
		ctx, s.credentials, hubs, durable, streams.WithLog(s.logger),
	)
}

// errRestarting is returned while no server runs.
var errRestarting = errors.New("the broker is being restarted")

// inProcess connects to one of the servers that run now.
type inProcess struct {
	broker *Server
	which  func(*run) *server.Server
}

// InProcessConn implements nats.InProcessConnProvider.
func (p inProcess) InProcessConn() (net.Conn, error) {
	now := p.broker.current.Load()
	if now == nil {
		return nil, errRestarting
	}
	return p.which(now).InProcessConn()
}

// NATSAddr returns the bound address of the NATS listener for taps, host:port. The durable server's
// is in Credentials.
func (s *Server) NATSAddr() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.natsAddr
}

// MQTTAddr returns the bound address of the MQTT listener, host:port. The host may be a wildcard
// address.
func (s *Server) MQTTAddr() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mqttAddr
}

// NotRecovered returns the folders on disk with messages of streams that the servers have not
// recovered.
func (s *Server) NotRecovered() ([]StreamFolder, error) {
	now := s.current.Load()
	if now == nil {
		return nil, errRestarting
	}
	hubs, err := notRecovered(s.store, now.hubs)
	if err != nil {
		return nil, err
	}
	durable, err := notRecovered(s.storeOf(streams.AccountCloud), now.durable)
	return append(hubs, durable...), err
}
