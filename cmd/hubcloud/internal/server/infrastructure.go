package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus/collectors"
	"golang.org/x/sync/errgroup"

	"hubcloud/cmd/hubcloud/internal/build"
	"hubcloud/cmd/hubcloud/internal/datadir"
	"hubcloud/cmd/hubcloud/internal/installation"
	"hubcloud/cmd/hubcloud/internal/usage"
	"hubcloud/httpapi/mail"
	"hubcloud/hubbridge/identity"
	"hubcloud/projections/cluster"
	"hubcloud/streams"
	"hubcloud/streams/backup"
	"hubcloud/streams/broker"
	"hubcloud/streams/diskspace"
)

// brokerStorage names the broker's streams and buckets in messages about a start that waits for
// them: the broker may be up while its streams have no leader yet.
const brokerStorage = "the broker's streams"

// viewSyncInterval is how often the embedded broker syncs the hub logs, which are written again
// from the journal after a power cut. Package hubviews relies on it.
const viewSyncInterval = 2 * time.Minute

// clusterJournals is the most journals of an installation on a cluster.
const clusterJournals = 16

// startInfrastructure locks the data directory and starts the broker and the database
// concurrently.
func (s *Server) startInfrastructure(ctx context.Context) (err error) {
	if s.lock, err = s.dir.Lock(); err != nil {
		return err
	}
	if err := s.cfg.checkPorts(); err != nil {
		return err
	}
	if err := s.dir.CheckRestored(); err != nil {
		return err
	}
	version := build.Current().Version
	if err := s.dir.CheckFormat(version); err != nil {
		return err
	}
	record := func() error { return s.dir.RecordFormat(version) }
	if s.dir.Recorded() {
		err = s.writeOrPostpone(datadir.FormatFile, record)
	} else {
		err = record() // before anything else: a directory without a format is not started again
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", datadir.FormatFile, err)
	}
	// After a kill, the file of the former process would report a server that is not ready.
	if err := s.dir.RemoveEndpoints(); err != nil {
		return err
	}
	if s.files, err = s.cfg.shareFiles(); err != nil {
		return err
	}
	if err := s.writeOrPostpone(datadir.StartedFile, s.writeServiceFile); err != nil {
		return fmt.Errorf("write %s: %w", datadir.StartedFile, err)
	}
	s.logger.Info(
		"open files allotted", "open_files", s.files.limit, "connections", s.files.api,
		"broker_connections", s.files.broker,
	)
	s.registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), newBuildInfo(s.cfg),
	)

	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.openDatabase(groupCtx) })
	group.Go(func() error { return s.openBroker(groupCtx) })
	return group.Wait()
}

// writeServiceFile writes to service.json how the server was started, for the doctor.
func (s *Server) writeServiceFile() error {
	started, err := describe(s.cfg, s.files)
	if err != nil {
		return err
	}
	return s.dir.WriteStarted(started)
}

// describe returns the content of service.json for a process that has just started.
func describe(cfg Config, files fileShares) (datadir.Started, error) {
	program := build.Current()
	started := datadir.Started{
		Version: program.Version, Commit: program.Commit,
		PID: os.Getpid(), UID: os.Geteuid(), At: time.Now().UTC(),
		Roles: cfg.Roles, Environment: cfg.Environment,
		ExternalBroker: cfg.NATSURL != "", ExternalDatabase: cfg.PostgresURL != "",
		Sync: cfg.Sync, LogReplicas: cfg.LogReplicas,
		Connections: files.api, HubConnections: files.broker,
		CACert: cfg.CACert, PublicMQTT: cfg.PublicMQTT,
	}
	if cfg.SMTPURL != "" {
		server, err := mail.ParseServer(cfg.SMTPURL)
		if err != nil {
			return started, err
		}
		started.MailServer = server.WithoutLogin()
	}
	return started, nil
}

// openDatabase starts the private database, unless an external one is configured, and writes the
// database's URL to postgres.json for the operator's commands.
func (s *Server) openDatabase(ctx context.Context) (err error) {
	s.postgresURL = s.cfg.PostgresURL
	if s.postgresURL == "" {
		s.postgres, err = cluster.Start(ctx, cluster.Config{
			Dir: s.dir.Path("postgres"), Fetch: s.cfg.FetchPostgres,
			UserAgent: build.UserAgent(), Logger: s.logger,
		})
		if err != nil {
			return fmt.Errorf("private database: %w", err)
		}
		s.postgresURL = s.postgres.URL()
	}
	database := datadir.Database{URL: s.postgresURL}
	err = s.writeOrPostpone(datadir.DatabaseFile, func() error {
		return s.dir.WriteDatabase(database)
	})
	if err != nil {
		return fmt.Errorf("write %s: %w", datadir.DatabaseFile, err)
	}
	return nil
}

// openBroker starts the embedded broker or connects to the external one, and opens the buckets and
// the installation's settings. A replica that listens for hubs or enrols hubs also opens the
// certificate authority.
func (s *Server) openBroker(ctx context.Context) (err error) {
	if s.cfg.NATSURL == "" || s.cfg.has(roleAPI) {
		s.authority, err = identity.OpenAuthority(identity.AuthorityConfig{
			Dir: s.dir.Path("ca"), CertificateFile: s.cfg.CACert, KeyFile: s.cfg.CAKey,
			AlsoFile: s.cfg.CAAlso, Hosts: s.brokerHosts(), Logger: s.logger, Metrics: s.registry,
		})
		if err != nil {
			return fmt.Errorf("certificate authority: %w", err)
		}
	}
	if s.cfg.NATSURL != "" {
		err = s.connectBroker(ctx)
	} else {
		err = s.embedBroker(ctx)
	}
	if err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	return s.retry(ctx, brokerStorage, func(ctx context.Context) (err error) {
		if err := backup.Unfinished(ctx, s.conns); err != nil {
			return err
		}
		format := installation.Format{Format: datadir.Format, Version: build.Current().Version}
		if err := installation.CheckFormat(ctx, s.conns.Cloud, format); err != nil {
			return err
		}
		if s.buckets, err = streams.OpenBuckets(ctx, s.conns, s.cfg.LogReplicas); err != nil {
			return err
		}
		// An embedded broker's streams have the format of the data directory.
		if s.cfg.NATSURL != "" {
			if err := installation.RecordFormat(ctx, s.conns.Cloud, format); err != nil {
				return err
			}
		}
		s.settings, err = installation.Open(
			ctx, s.conns.Cloud, s.buckets.Installation, s.cfg.Environment, s.newJournals(),
		)
		return err
	})
}

// newJournals returns the number of journals of a new installation. The commits of one journal
// follow one another: a single disk is used best by one journal, a cluster by several.
func (s *Server) newJournals() int {
	if s.broker != nil {
		return 1
	}
	return min(len(s.conns.Shards), clusterJournals)
}

// embedBroker runs the broker in this process.
func (s *Server) embedBroker(ctx context.Context) (err error) {
	syncInterval, err := ParseSync(s.cfg.Sync)
	if err != nil {
		return err
	}
	reserve, err := diskspace.ParseReserve(s.cfg.DiskReserve)
	if err != nil {
		return err
	}
	if s.space, err = diskspace.Open(string(s.dir), reserve, s.logger); err != nil {
		return err
	}
	s.foundation.run("disk space", s.space.Run)
	s.broker, err = broker.Start(ctx, broker.Config{
		DataDir: string(s.dir), Shards: s.cfg.Shards, NATSAddr: s.cfg.NATS, MQTTAddr: s.cfg.MQTT,
		MQTTTLS: s.authority.ServerTLS(), Connections: s.files.broker, SyncInterval: syncInterval,
		ViewSyncInterval: viewSyncInterval,
		Space:            s.space, Logger: s.logger, Metrics: s.registry,
	})
	if errors.Is(err, broker.ErrShards) {
		return usage.Errorf("--shards: %w", err)
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

// connectBroker connects to an external broker.
func (s *Server) connectBroker(ctx context.Context) (err error) {
	if s.credentials, err = streams.ReadCredentials(s.cfg.NATSCredentials); err != nil {
		return err
	}
	s.credentials.URL = s.cfg.NATSURL
	s.bound.NATS = brokerAddresses(s.cfg.NATSURL)
	s.bound.MQTT, s.bound.NATSCredentials = s.cfg.PublicMQTT, s.cfg.NATSCredentials
	for _, conns := range []**streams.Conns{&s.conns, &s.reads} {
		err := s.retry(ctx, "the broker", func(ctx context.Context) (err error) {
			*conns, err = streams.Connect(ctx, s.credentials, streams.WithLog(s.logger))
			return err
		})
		if err != nil {
			return err
		}
	}
	return s.retry(ctx, brokerStorage, func(ctx context.Context) error {
		return broker.DeclareMQTTStreams(ctx, s.conns, s.cfg.LogReplicas)
	})
}

// stopInfrastructure closes the connections, stops broker and database concurrently, and releases
// the data directory.
func (s *Server) stopInfrastructure() {
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
			ctx, cancel := context.WithTimeout(context.Background(), postgresTimeout)
			defer cancel()
			return s.postgres.Stop(ctx)
		})
	}
	if err := group.Wait(); err != nil {
		s.logger.Error("broker or database not stopped in order", "error", err)
	}
	if s.lock != nil {
		if err := s.dir.RemoveEndpoints(); err != nil {
			s.logger.Warn("endpoints.json not removed", "error", err)
		}
		if err := s.lock.Release(); err != nil {
			s.logger.Warn("data directory not unlocked", "error", err)
		}
	}
}
