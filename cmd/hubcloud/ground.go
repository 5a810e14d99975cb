package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/prometheus/client_golang/prometheus/collectors"
	"golang.org/x/sync/errgroup"

	"hubcloud/hubbridge/identity"
	"hubcloud/projections/cluster"
	"hubcloud/streams"
	"hubcloud/streams/backup"
	"hubcloud/streams/broker"
	"hubcloud/streams/diskspace"
)

// layGround takes the data directory, and brings up broker and database side by side.
func (s *service) layGround(ctx context.Context) (err error) {
	if s.lock, err = s.dir.lock(); err != nil {
		return err
	}
	if err := s.dir.mustBeWhole(); err != nil {
		return err
	}
	// What a killed service left must not tell anybody that this one is ready.
	if err := os.Remove(s.dir.path("endpoints.json")); err != nil &&
		!errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := s.writeLater(startedFile, func() error { return s.dir.writeStarted(s.flags) }); err != nil {
		return fmt.Errorf("write %s: %w", startedFile, err)
	}
	if s.files, err = s.flags.shareFiles(); err != nil {
		return err
	}
	s.log.Info(
		"open files shared out", "open_files", s.files.limit, "connections", s.files.api,
		"broker_connections", s.files.broker,
	)
	s.registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), newBuildInfo(s.flags),
	)

	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.openDatabase(groupCtx) })
	group.Go(func() error { return s.openBroker(groupCtx) })
	return group.Wait()
}

func (s *service) openDatabase(ctx context.Context) (err error) {
	s.postgresURL = s.flags.PostgresURL
	if s.postgresURL == "" {
		s.postgres, err = cluster.Start(
			ctx,
			cluster.Config{Dir: s.dir.path("postgres"), Fetch: s.flags.fetchPostgres, Log: s.log},
		)
		if err != nil {
			return fmt.Errorf("private database: %w", err)
		}
		s.postgresURL = s.postgres.URL()
	}
	url := s.postgresURL
	if err := s.writeLater("postgres.json", func() error {
		return s.dir.writeDatabase(database{
			URL: url,
		})
	}); err != nil {
		return fmt.Errorf("write postgres.json: %w", err)
	}
	return nil
}

func (s *service) openBroker(ctx context.Context) (err error) {
	if s.flags.NATSURL == "" || s.flags.has(roleAPI) { // who listens for hubs, and who enrols them
		s.authority, err = identity.OpenAuthority(identity.AuthorityConfig{
			Dir: s.dir.path(
				"ca",
			), CertificateFile: s.flags.CACert, KeyFile: s.flags.CAKey, AlsoFile: s.flags.CAAlso,
			Hosts: s.brokerHosts(), Log: s.log, Metrics: s.registry,
		})
		if err != nil {
			return fmt.Errorf("certificate authority: %w", err)
		}
	}
	if s.flags.NATSURL != "" {
		err = s.joinBroker(ctx)
	} else {
		err = s.embedBroker(ctx)
	}
	if err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	return s.await(ctx, brokerStorage, func(ctx context.Context) (err error) {
		if err := backup.Unfinished(ctx, s.conns); err != nil {
			return err
		}
		if s.buckets, err = streams.OpenBuckets(ctx, s.conns, s.flags.LogReplicas); err != nil {
			return err
		}
		s.settings, err = settle(ctx, s.conns.Cloud, s.buckets.Installation, s.flags.Environment)
		return err
	})
}

// brokerStorage is what a start waits for while the broker is there and its streams are not.
const brokerStorage = "the broker's streams"

// embedBroker runs the broker in this process.
func (s *service) embedBroker(ctx context.Context) (err error) {
	sync, err := s.flags.syncInterval()
	if err != nil {
		return err
	}
	reserve, err := diskspace.ParseReserve(s.flags.DiskReserve)
	if err != nil {
		return err
	}
	if s.space, err = diskspace.Open(string(s.dir), reserve, s.log); err != nil {
		return err
	}
	s.foundation.run("disk space", s.space.Run)
	s.broker, err = broker.Start(ctx, broker.Config{
		DataDir: string(
			s.dir,
		), Shards: s.flags.Shards, NATSAddr: s.flags.NATS, MQTTAddr: s.flags.MQTT,
		MQTTTLS:     s.authority.ServerTLS(),
		Connections: s.files.broker, SyncInterval: sync, Space: s.space, Log: s.log,
		Metrics: s.registry,
	})
	if errors.Is(err, broker.ErrShards) {
		return usagef("--shards: %w", err)
	}
	if err != nil {
		return err
	}
	s.credentials = s.broker.Credentials()
	s.bound.NATS, s.bound.MQTT = s.broker.NATSAddr(), s.broker.MQTTAddr()
	if s.conns, err = s.broker.Connect(ctx); err != nil {
		return err
	}
	s.reads, err = s.broker.Connect(ctx)
	return err
}

// joinBroker uses a broker that others run.
func (s *service) joinBroker(ctx context.Context) (err error) {
	if s.credentials, err = streams.ReadCredentials(s.flags.NATSCredentials); err != nil {
		return err
	}
	s.credentials.URL = s.flags.NATSURL
	s.bound.NATS, s.bound.MQTT, s.bound.NATSCredentials = brokerAddresses(
		s.flags.NATSURL,
	), s.flags.PublicMQTT, s.flags.NATSCredentials
	for _, conns := range []**streams.Conns{&s.conns, &s.reads} {
		err := s.await(ctx, "the broker", func(ctx context.Context) (err error) {
			*conns, err = streams.Connect(ctx, s.credentials, streams.WithLog(s.log))
			return err
		})
		if err != nil {
			return err
		}
	}
	return s.await(
		ctx, brokerStorage,
		func(ctx context.Context) error { return broker.RefuseRetained(ctx, s.conns, s.flags.LogReplicas) },
	)
}

// brokerAddresses gives the addresses in the URLs of a broker, HOST:PORT, separated by commas.
func brokerAddresses(urls string) string {
	all := strings.Split(urls, ",")
	for i, one := range all {
		if where, err := url.Parse(strings.TrimSpace(one)); err == nil && where.Host != "" {
			one = where.Host
		}
		all[i] = strings.TrimSpace(one)
	}
	return strings.Join(all, ",")
}

// brokerHosts are the names under which hubs reach the broker, for its certificate.
func (s *service) brokerHosts() []string {
	var hosts []string
	for _, address := range []string{s.flags.PublicMQTT, s.flags.MQTT} {
		if host, _, err := net.SplitHostPort(address); err == nil {
			hosts = append(hosts, host)
		}
	}
	if public, err := url.Parse(s.flags.PublicURL); err == nil {
		hosts = append(hosts, public.Hostname())
	}
	return hosts
}

// brokerURL is the address of the broker that hubs are told.
func (s *service) brokerURL() string {
	if s.flags.PublicMQTT != "" {
		return "mqtts://" + s.flags.PublicMQTT
	}
	host, port, err := net.SplitHostPort(s.bound.MQTT)
	if err != nil {
		return "mqtts://" + s.bound.MQTT
	}
	if public, err := url.Parse(s.bound.PublicURL); err == nil && isWildcard(host) {
		host = public.Hostname()
	}
	return "mqtts://" + net.JoinHostPort(host, port)
}

// isWildcard says that an address is every address of the machine, so that nobody can be told to
// connect to it.
func isWildcard(host string) bool {
	ip := net.ParseIP(host)
	return host == "" || ip != nil && ip.IsUnspecified()
}

// leaveGround stops broker and database side by side, and gives the data directory free.
func (s *service) leaveGround() {
	for _, conns := range []*streams.Conns{s.reads, s.conns} {
		if conns != nil {
			conns.Close()
		}
	}
	var group errgroup.Group
	if s.broker != nil {
		group.Go(func() error {
			ctx, cancel := context.WithTimeout(context.Background(), brokerTimeout)
			defer cancel()
			return s.broker.Close(ctx)
		})
	}
	if s.postgres != nil {
		group.Go(func() error {
			ctx, cancel := context.WithTimeout(context.Background(), pgTimeout)
			defer cancel()
			return s.postgres.Stop(ctx)
		})
	}
	if err := group.Wait(); err != nil {
		s.log.Error("could not stop in order", "error", err)
	}
	if s.lock != nil {
		if err := os.Remove(s.dir.path("endpoints.json")); err != nil &&
			!errors.Is(err, os.ErrNotExist) {
			s.log.Warn("could not remove endpoints.json", "error", err)
		}
		s.lock.Close() // gives the lock free
	}
}
