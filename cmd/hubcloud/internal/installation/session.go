package installation

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/domain"
	"hubcloud/hubbridge/identity"
	"hubcloud/projections/projector"
	"hubcloud/projections/rebuild"
	"hubcloud/streams"
	"hubcloud/streams/book"
	"hubcloud/streams/directory"
	"hubcloud/streams/replicas"
)

// dialTimeout bounds the connection to one server of the broker.
const dialTimeout = 10 * time.Second

// AnyReplicas leaves streams and buckets with as many replicas as they have.
const AnyReplicas = 0

// Service names the service that an operator works on.
type Service struct {
	// DataDir is the data directory of the running service.
	DataDir string
	// NATSURL is the broker's URL; by default the broker of the service on DataDir.
	NATSURL string
	// NATSCredentials is the path of the broker's credentials; by default the service's on
	// DataDir.
	NATSCredentials string
}

// Session is a connection to a running service.
type Session struct {
	// Conns has no connections to shards.
	Conns    *streams.Conns
	Buckets  *streams.Buckets
	Settings Settings
	// Log is the directory log, Directory the service that appends to it.
	Log       *directory.Log
	Directory *directory.Service

	cfg          directory.ServiceConfig
	disconnector *identity.Disconnector
}

// Connect connects to the broker of a running service. The caller closes the session. The error is
// ErrNotRunning when nothing listens there.
func Connect(ctx context.Context, service Service) (*Session, error) {
	credentials, err := service.Credentials()
	if err != nil {
		return nil, err
	}
	conns, err := streams.ConnectCloud(
		ctx, credentials, nats.RetryOnFailedConnect(false), nats.Timeout(dialTimeout),
	)
	if errors.Is(err, nats.ErrNoServers) {
		return nil, fmt.Errorf("%w at %s: %w", ErrNotRunning, credentials.URL, err)
	}
	if err != nil { // a slow machine, or credentials that the broker rejects
		return nil, fmt.Errorf("the service at %s: %w", credentials.URL, err)
	}
	s, err := newSession(ctx, conns)
	if err != nil {
		conns.Close()
	}
	return s, err
}

func newSession(ctx context.Context, conns *streams.Conns) (*Session, error) {
	buckets, err := streams.OpenBuckets(ctx, conns, AnyReplicas)
	if err != nil {
		return nil, err
	}
	settings, err := Read(ctx, conns.Cloud, buckets.Installation)
	if err != nil {
		return nil, err
	}
	log, err := directory.Open(ctx, conns, AnyReplicas)
	if err != nil {
		return nil, err
	}
	discard := slog.New(slog.DiscardHandler)
	disconnector := identity.NewDisconnector(conns, discard, nil)
	cfg := directory.ServiceConfig{
		Environment:   settings.Environment,
		AwaitReplicas: replicas.NewBarrier(conns, "", discard).Wait,
		Connections:   disconnector,
		Logs:          hubLogs{conns, settings.Journals},
	}
	return &Session{
		Conns: conns, Buckets: buckets, Settings: settings, Log: log,
		Directory: directory.NewService(log, cfg), cfg: cfg, disconnector: disconnector,
	}, nil
}

// Close closes the connection. Before that it waits some seconds until connections of hubs that a
// change cuts can no longer escape.
func (s *Session) Close() {
	s.disconnector.Finish()
	s.Conns.Close()
}

// ReadModels opens the read models in the database with the given URL.
func (s *Session) ReadModels(ctx context.Context, url string) (*rebuild.Control, error) {
	journals, err := openJournals(s.Conns, s.Settings.Journals)
	if err != nil {
		return nil, err
	}
	return rebuild.Open(ctx, url, s.Settings.ID, rebuild.Config{
		Sources: projector.Sources{
			Directory: s.Log, Presence: s.Buckets.Presence, Journal: journals,
			Book: book.New(s.Conns.Cloud),
		},
		Logger: slog.New(slog.DiscardHandler),
	})
}

// Origin returns the origin of changes that an operator makes now.
func OperatorOrigin() domain.Origin {
	return domain.Origin{At: time.Now(), Actor: domain.Actor{Kind: domain.ActorOperator}}
}

// Dir returns the data directory.
func (s Service) Dir() Dir { return Dir(s.DataDir) }

// Broker returns the broker's URL and the path of its credentials. embedded reports whether the
// broker runs in the process of a service on the data directory.
func (s Service) Broker() (url, credentials string, embedded bool, err error) {
	url, credentials = s.NATSURL, s.Dir().Path(CredentialsFile)
	if url == "" {
		bound, err := s.Dir().Endpoints()
		if err != nil {
			return "", "", false, err
		}
		url, embedded = "nats://"+bound.NATS, bound.EmbeddedBroker()
		if !embedded {
			credentials = bound.NATSCredentials
		}
	}
	if s.NATSCredentials != "" {
		credentials = s.NATSCredentials
	}
	return url, credentials, embedded, nil
}

// Credentials reads the broker's credentials and sets their URL.
func (s Service) Credentials() (streams.Credentials, error) {
	url, path, _, err := s.Broker()
	if err != nil {
		return streams.Credentials{}, err
	}
	credentials, err := streams.ReadCredentials(path)
	if errors.Is(err, fs.ErrNotExist) {
		return credentials, Usagef(
			"no broker credentials at %s: name the file with --nats-credentials, or the "+
				"service's --data-dir",
			path,
		)
	}
	if err != nil {
		return credentials, err
	}
	credentials.URL = url
	return credentials, nil
}
