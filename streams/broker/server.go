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
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"hubcloud/streams"
)

const (
	// calloutSubject is where the server asks, in the account CLOUD, who an MQTT client is.
	calloutSubject = server.AuthCalloutSubject
	// readyPoll is how often Start looks whether the listeners are there; they are when the
	// server's own start returns, or never.
	readyPoll    = 50 * time.Millisecond
	readyTimeout = 5 * time.Second
	// closeWait bounds how long a restart waits for the end of the server before it.
	closeWait = time.Minute
	// undecidedTimeout bounds how long RefuseHubs waits for connections that are neither let in nor
	// refused; whoever connects to the port and says nothing is one of them.
	undecidedTimeout = time.Second
	undecidedPoll    = 5 * time.Millisecond
	// undecidedAccount is where the server has connections before it knows whose they are.
	undecidedAccount = server.DEFAULT_GLOBAL_ACCOUNT
)

// Server is a running broker. Its methods are safe for concurrent use.
type Server struct {
	cfg         Config
	store       string
	options     func() (*server.Options, error)
	credentials streams.Credentials
	log         *slog.Logger
	faults      *faults
	// maxConnections is the bound on connections, and undecidedClosed how many were closed to make
	// room below it.
	maxConnections  int
	undecidedClosed atomic.Int64

	// current is the run that connections are made to; nil before the first one, and between two.
	current atomic.Pointer[run]

	// stop ends the recovery loop and makeRoom, and recovering waits for them.
	stop       context.CancelFunc
	recovering sync.WaitGroup

	mu sync.Mutex
	// last is the last run that was begun. Close ends it.
	last *run
	// mqttAddr and natsAddr are what the first run bound; later ones bind the same.
	mqttAddr, natsAddr string
}

// run is one life of the NATS server. A Server has a second one after its store has failed.
type run struct {
	server *server.Server
	gate   *gate
}

// Start starts the broker and returns when it takes connections: streams of former runs are there.
// It does not open the gate to hubs: that opens by itself when the auth callout is answered.
// ErrShards is returned for another number of shards than the installation's.
//
// ctx bounds the start only. The server's recovery of its streams cannot be broken off; a ctx that
// ends meanwhile is seen after it.
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
	maxStore, err := storageLimit(store)
	if err != nil {
		return nil, err
	}
	warnOfOpenFiles(cfg.Log, max(used.hubLogs, cfg.ExpectedHubs))
	s := &Server{
		cfg:            cfg,
		store:          store,
		credentials:    credentials,
		log:            cfg.Log,
		faults:         newFaults(),
		maxConnections: cfg.maxConnections(settled.Shards),
	}
	s.options = func() (*server.Options, error) { return serverOptions(s.cfg, settled, credentials, maxStore) }
	opts, err := s.options()
	if err != nil {
		return nil, err
	}
	if !loopback(opts.Host) {
		cfg.Log.Warn(
			"the NATS listener is open to other machines and has no TLS: passwords and data pass in the clear",
			"nats", cfg.NATSAddr,
		)
	}
	if err := s.begin(ctx, opts); err != nil {
		return nil, errors.Join(err, s.Close(context.WithoutCancel(ctx)))
	}
	if err := s.finishStart(); err != nil {
		return nil, errors.Join(err, s.Close(context.WithoutCancel(ctx)))
	}
	if err := s.syncAllFolders(); err != nil {
		return nil, errors.Join(err, s.Close(context.WithoutCancel(ctx)))
	}
	s.sayDurability(cfg.SyncInterval)
	cfg.Log.Info(
		"broker started", "mqtt", s.mqttAddr, "nats", s.natsAddr, "shards", settled.Shards,
		"hub_logs", used.hubLogs, "storage_bytes", used.bytes, "storage_limit_bytes", maxStore,
	)
	return s, nil
}

// finishStart writes the credentials with the address that was bound, and begins to watch for
// faults of the store.
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
	s.recovering.Go(func() { s.recover(ctx) })
	s.recovering.Go(func() { s.makeRoom(ctx, s.maxConnections) })
	return nil
}

// begin repairs the store, runs a server on it, and lets connections in once it is ready. After an
// error Close is due.
func (s *Server) begin(ctx context.Context, opts *server.Options) error {
	if err := errors.Join(removeProbes(s.store), Repair(s.store, s.log)); err != nil {
		return err
	}
	next := &run{}
	next.gate = newGate(next.calloutAnswered)
	opts.MQTT.TLSConfig = next.gate.guard(s.cfg.MQTTTLS)
	var err error
	if next.server, err = server.NewServer(opts); err != nil {
		next.gate.close()
		return err
	}
	s.mu.Lock()
	s.last = next
	s.mu.Unlock()
	lines := newLogger(s.log, s.faults)
	next.server.SetLoggerV2(lines, false, false, false)
	next.server.Start()
	if err := next.awaitReady(ctx, lines.fatal); err != nil {
		return err
	}
	s.mu.Lock()
	// The server puts the port that it bound where the wish was.
	s.mqttAddr = net.JoinHostPort(opts.MQTT.Host, strconv.Itoa(opts.MQTT.Port))
	s.natsAddr = next.server.Addr().String()
	// A later run binds the same.
	s.cfg.MQTTAddr, s.cfg.NATSAddr = s.mqttAddr, s.natsAddr
	if url := "nats://" + s.natsAddr; s.credentials.URL != url {
		s.credentials.URL = url
	}
	s.mu.Unlock()
	conns, err := streams.Connect(
		ctx, s.credentials, nats.InProcessServer(next.server), streams.WithLog(s.log),
	)
	if err != nil {
		return err
	}
	defer conns.Close()
	if err := RefuseRetained(ctx, conns, 1); err != nil {
		return err
	}
	s.current.Store(next)
	return nil
}

func (r *run) awaitReady(ctx context.Context, fatal <-chan string) error {
	for deadline := time.Now().Add(readyTimeout); ; {
		ready := r.server.ReadyForConnections(readyPoll)
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
	s.log.Warn(
		"what is acknowledged is synced to disk only now and then: a power cut can lose the last "+
			"of it, a crash of the service cannot",
		"sync_interval",
		interval.String(),
	)
}

// calloutAnswered says whether somebody has subscribed to the callout's requests.
func (r *run) calloutAnswered() bool {
	if r.server == nil {
		return false
	}
	account, err := r.server.LookupAccount(string(streams.AccountCloud))
	return err == nil && account.SubscriptionInterest(calloutSubject)
}

// Credentials says how to reach the broker's accounts. They are the same over restarts, but for the
// address.
func (s *Server) Credentials() streams.Credentials { return s.credentials }

// Connect connects to every account within the process, without a socket. The connections outlive a
// restart of the server.
func (s *Server) Connect(ctx context.Context) (*streams.Conns, error) {
	return streams.Connect(ctx, s.credentials, nats.InProcessServer(s), streams.WithLog(s.log))
}

// errRestarting is returned to connections while there is no server to connect to.
var errRestarting = errors.New("the broker is being restarted")

// InProcessConn makes Server a nats.InProcessConnProvider: it connects to the server that runs now.
func (s *Server) InProcessConn() (net.Conn, error) {
	now := s.current.Load()
	if now == nil {
		return nil, errRestarting
	}
	return now.server.InProcessConn()
}

// NATSAddr is the address that the NATS listener bound, host:port.
func (s *Server) NATSAddr() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.natsAddr
}

// MQTTAddr is the address that the MQTT listener bound, host:port. The host is a wildcard address
// when it listens on all.
func (s *Server) MQTTAddr() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mqttAddr
}

// ServerID is the server's id of this run, empty between two: events and requests of the account
// SYS carry it.
func (s *Server) ServerID() string {
	if now := s.current.Load(); now != nil {
		return now.server.ID()
	}
	return ""
}

// NotRecovered returns the folders on disk that hold messages of a stream that the server does not
// have.
func (s *Server) NotRecovered() ([]StreamFolder, error) {
	now := s.current.Load()
	if now == nil {
		return nil, errRestarting
	}
	return notRecovered(s.store, now.server)
}

// RefuseHubs lets no more hubs in and returns when those that were coming in are in or refused, ctx
// ends, or a second is over. It is due before whoever answers the auth callout stops: a hub whose
// question nobody answers holds up Close for as long as the server waits for the answer.
func (s *Server) RefuseHubs(ctx context.Context) {
	s.endRecovery()
	if now := s.current.Load(); now != nil {
		now.refuseHubs(ctx)
	}
}

func (r *run) refuseHubs(ctx context.Context) {
	r.gate.close()
	// Nats-server 2.15 takes its system account away at the beginning of a shutdown, and a callout
	// that begins after that ends the process: this waits for connections that may be about to.
	account, err := r.server.LookupAccount(undecidedAccount)
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
			r.cutUndecided()
			return
		case <-ticker.C:
		}
	}
}

// cutUndecided closes the connections about which the callout has not been asked yet.
func (r *run) cutUndecided() {
	undecided, err := r.server.Connz(
		&server.ConnzOptions{Account: undecidedAccount, Limit: maxConnections},
	)
	if err != nil {
		return // the server is on its way out already
	}
	for _, conn := range undecided.Conns {
		_ = r.server.DisconnectClientByID(conn.Cid) // fails when it has gone by itself
	}
}

// end refuses hubs, ends every connection, writes what is to be written, and returns when the
// server has stopped.
func (r *run) end(ctx context.Context) {
	if r.server == nil {
		return
	}
	r.refuseHubs(ctx)
	r.server.Shutdown()
	r.server.WaitForShutdown()
}

// endRecovery ends the loop that restarts a server whose store has failed.
func (s *Server) endRecovery() {
	if s.stop != nil {
		s.stop()
	}
	s.recovering.Wait()
}

// Close refuses hubs as RefuseHubs does, ends every connection, writes what is to be written, and
// stops the server. It returns ctx's error when ctx ends before that; the server then goes on
// stopping. It may be called more than once.
func (s *Server) Close(ctx context.Context) error {
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		s.endRecovery()
		s.mu.Lock()
		last := s.last
		s.mu.Unlock()
		if last != nil {
			last.end(ctx)
		}
	}()
	select {
	case <-stopped:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
