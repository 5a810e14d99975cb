package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/directory"
)

// operatorTimeout bounds an operator's command: what is not answered by then is reported as such.
const operatorTimeout = 30 * time.Second

// operator finds a running service, for the commands that talk to one.
type operator struct {
	DataDir         string `help:"Data directory of the running service." default:"./data" type:"path"`
	NATSURL         string `help:"Broker to talk to, instead of the one of --data-dir." name:"nats-url" placeholder:"URL"`
	NATSCredentials string `help:"Credentials file for --nats-url; by default nats-credentials.json in --data-dir." name:"nats-credentials" type:"path" placeholder:"FILE"`
}

// anyReplicas leaves streams and buckets with as many replicas as they have.
const anyReplicas = 0

// session is an operator's command under way.
type session struct {
	conns    *streams.Conns
	buckets  *streams.Buckets
	settings settings
	log      *directory.Log
	barrier  *streams.Barrier
	service  *directory.Service
}

// connect reaches the running service's broker. What its commands did is in force on every replica
// when they return.
func (o operator) connect(ctx context.Context) (*session, error) {
	credentials, err := o.credentials()
	if err != nil {
		return nil, err
	}
	conns, err := streams.Connect(
		ctx, credentials, nats.RetryOnFailedConnect(false), nats.Timeout(5*time.Second),
	)
	if err != nil {
		return nil, fmt.Errorf("%w at %s: %w", errNotRunning, credentials.URL, err)
	}
	s, err := newSession(ctx, conns)
	if err != nil {
		conns.Close()
	}
	return s, err
}

func newSession(ctx context.Context, conns *streams.Conns) (*session, error) {
	buckets, err := streams.OpenBuckets(ctx, conns, anyReplicas)
	if err != nil {
		return nil, err
	}
	installation, err := readSettings(ctx, conns.Cloud, buckets.Installation)
	if err != nil {
		return nil, err
	}
	log, err := directory.Open(ctx, conns, anyReplicas)
	if err != nil {
		return nil, err
	}
	barrier := streams.NewBarrier(conns, "", slog.New(slog.DiscardHandler))
	return &session{
		conns: conns, buckets: buckets, settings: installation, log: log, barrier: barrier,
		service: directory.NewService(log, directory.ServiceConfig{
			Environment: installation.Environment, EverywhereApplied: barrier.Wait,
		}),
	}, nil
}

// broker gives the broker's address, the file with the credentials for it, and whether it is the
// one in the process of a service on the data directory.
func (o operator) broker() (url, path string, embedded bool, err error) {
	dir := dataDir(o.DataDir)
	url, path = o.NATSURL, dir.path("nats-credentials.json")
	if url == "" {
		bound, err := dir.endpoints()
		if err != nil {
			return "", "", false, err
		}
		url, embedded = "nats://"+bound.NATS, bound.NATSCredentials == ""
		if !embedded {
			path = bound.NATSCredentials
		}
	}
	if o.NATSCredentials != "" {
		path = o.NATSCredentials
	}
	return url, path, embedded, nil
}

func (o operator) credentials() (streams.Credentials, error) {
	url, path, _, err := o.broker()
	if err != nil {
		return streams.Credentials{}, err
	}
	credentials, err := streams.ReadCredentials(path)
	if errors.Is(err, fs.ErrNotExist) {
		return credentials, usagef(
			"no broker credentials at %s: name the file with --nats-credentials, or the service's --data-dir",
			path,
		)
	}
	if err != nil {
		return credentials, err
	}
	credentials.URL = url
	return credentials, nil
}

// byOperator is the origin of what an operator does from the command line.
func byOperator() domain.Origin {
	return domain.Origin{At: time.Now(), Actor: domain.Actor{Kind: domain.ActorOperator}}
}

// do runs one operator's command on a session of its own.
func (o operator) do(
	ctx context.Context, command func(ctx context.Context, s *session) error,
) error {
	ctx, cancel := context.WithTimeout(ctx, operatorTimeout)
	defer cancel()
	s, err := o.connect(ctx)
	if err != nil {
		return err
	}
	defer s.conns.Close()
	return command(ctx, s)
}
