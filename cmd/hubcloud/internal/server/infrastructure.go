package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus/collectors"
	"golang.org/x/sync/errgroup"

	"hubcloud/cmd/hubcloud/internal/installation"
	"hubcloud/httpapi/mail"
	"hubcloud/hubbridge/identity"
	"hubcloud/projections/cluster"
	"hubcloud/streams"
	"hubcloud/streams/backup"
	"hubcloud/streams/broker"
	"hubcloud/streams/disk"
)

// brokerStorage names the broker's streams and buckets in messages about a start that waits for
// them: the broker may be up while its streams have no leader yet.
const brokerStorage = "the broker's streams"

// viewSyncInterval is how often the embedded broker syncs the hub logs, which are written again
// from the journal after a power cut. Package views relies on it.
const viewSyncInterval = 2 * time.Minute

// clusterJournals is the most journals of an installation on a cluster.
const clusterJournals = 16

// infrastructure is the lowest layer: the data directory, broker and database, and what the
// installation is. broker and postgres are nil when external ones are configured.
type infrastructure struct {
	*process
	files       fileShares
	authority   *identity.Authority
	rejections  *identity.Rejections
	postgres    *cluster.Cluster
	postgresURL string
	broker      *broker.Server
	space       *disk.Guard
	credentials streams.Credentials
	conns       *streams.Conns
	reads       *streams.Conns // separate connections, so that long reads do not delay writes
	buckets     *streams.Buckets
	settings    installation.Settings
}

// startInfrastructure locks the data directory and starts the broker and the database
// concurrently.
func (p *process) startInfrastructure(ctx context.Context) (*infrastructure, error) {
	s := &infrastructure{process: p, rejections: identity.NewRejections(p.shares, nil)}
	if err := s.openDirectory(); err != nil {
		return nil, err
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
	if err := group.Wait(); err != nil {
		return nil, err
	}
	s.health.add("broker", s.checkBroker)
	if s.broker != nil {
		s.health.add("disk", s.checkDisk)
	}
	return s, nil
}

// openDirectory locks the data directory, checks that this program may use it, and records there
// how the replica was started.
func (s *infrastructure) openDirectory() error {
	lock, err := s.dir.Lock()
	if err != nil {
		return err
	}
	s.atStop(closeDirectory, func() {
		if err := s.dir.RemoveEndpoints(); err != nil {
			s.logger.Warn("endpoints.json not removed", "error", err)
		}
		if err := lock.Release(); err != nil {
			s.logger.Warn("data directory not unlocked", "error", err)
		}
	})
	if err := s.cfg.checkPorts(); err != nil {
		return err
	}
	if err := s.dir.CheckRestored(); err != nil {
		return err
	}
	if err := s.dir.CheckFormat(); err != nil {
		return err
	}
	record := func() error { return s.dir.RecordFormat() }
	if s.dir.Recorded() {
		err = s.writeOrPostpone(installation.FormatFile, record)
	} else {
		err = record() // before anything else: a directory without a format is not started again
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", installation.FormatFile, err)
	}
	// After a kill, the file of the former process would report a server that is not ready.
	if err := s.dir.RemoveEndpoints(); err != nil {
		return err
	}
	if s.files, err = s.cfg.shareFiles(); err != nil {
		return err
	}
	if err := s.writeOrPostpone(installation.StartedFile, s.writeServiceFile); err != nil {
		return fmt.Errorf("write %s: %w", installation.StartedFile, err)
	}
	return nil
}

// writeServiceFile writes to service.json how the server was started, for the doctor.
func (s *infrastructure) writeServiceFile() error {
	started, err := describe(s.cfg)
	if err != nil {
		return err
	}
	return s.dir.WriteStarted(started)
}

// describe returns the content of service.json for a process that has just started.
func describe(cfg Config) (installation.Started, error) {
	program := installation.Program()
	started := installation.Started{
		Version: program.Version, Commit: program.Commit,
		PID: os.Getpid(), UID: os.Geteuid(), At: time.Now().UTC(),
		Roles: cfg.Roles, Environment: cfg.Environment,
		ExternalBroker: cfg.NATSURL != "", ExternalDatabase: cfg.PostgresURL != "",
		LogReplicas: cfg.LogReplicas, CACert: cfg.CACert, PublicMQTT: cfg.PublicMQTT,
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
func (s *infrastructure) openDatabase(ctx context.Context) (err error) {
	s.postgresURL = s.cfg.PostgresURL
	if s.postgresURL == "" {
		s.postgres, err = cluster.Start(ctx, cluster.Config{
			Dir: s.dir.Path("postgres"), Fetch: s.cfg.FetchPostgres,
			UserAgent: installation.UserAgent(), Logger: s.logger,
		})
		if err != nil {
			return fmt.Errorf("private database: %w", err)
		}
		s.atStop(closeServers, func() {
			ctx, cancel := context.WithTimeout(context.Background(), postgresTimeout)
			defer cancel()
			if err := s.postgres.Stop(ctx); err != nil {
				s.logger.Error("database not stopped in order", "error", err)
			}
		})
		s.postgresURL = s.postgres.URL()
	}
	database := installation.Database{URL: s.postgresURL}
	err = s.writeOrPostpone(installation.DatabaseFile, func() error {
		return s.dir.WriteDatabase(database)
	})
	if err != nil {
		return fmt.Errorf("write %s: %w", installation.DatabaseFile, err)
	}
	return nil
}

// openBroker starts the embedded broker or connects to the external one, and opens the buckets and
// the installation's settings. A replica that listens for hubs or enrols hubs also opens the
// certificate authority.
func (s *infrastructure) openBroker(ctx context.Context) (err error) {
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
		if err := installation.CheckFormat(ctx, s.conns.Cloud); err != nil {
			return err
		}
		if s.buckets, err = streams.OpenBuckets(ctx, s.conns, s.cfg.LogReplicas); err != nil {
			return err
		}
		// An embedded broker's streams have the format of the data directory.
		if s.cfg.NATSURL != "" {
			if err := installation.RecordFormat(ctx, s.conns.Cloud); err != nil {
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
func (s *infrastructure) newJournals() int {
	if s.broker != nil {
		return 1
	}
	return min(len(s.conns.Shards), clusterJournals)
}

// embedBroker runs the broker in this process.
func (s *infrastructure) embedBroker(ctx context.Context) (err error) {
	syncInterval, err := ParseSync(s.cfg.Sync)
	if err != nil {
		return err
	}
	reserve, err := disk.ParseReserve(s.cfg.DiskReserve)
	if err != nil {
		return err
	}
	if s.space, err = disk.OpenGuard(string(s.dir), reserve, s.logger); err != nil {
		return err
	}
	s.run(stopLoops, "disk space", s.space.Run)
	s.broker, err = broker.Start(ctx, broker.Config{
		DataDir: string(s.dir), Shards: s.cfg.Shards, NATSAddr: s.cfg.NATS, MQTTAddr: s.cfg.MQTT,
		MQTTTLS: s.rejections.Guard(s.authority.ServerTLS()), Pause: s.rejections.Pause,
		Connections: s.files.broker, SyncInterval: syncInterval, ViewSyncInterval: viewSyncInterval,
		Space: s.space, Logger: s.logger, Metrics: s.registry,
	})
	if errors.Is(err, broker.ErrShards) {
		return installation.Usagef("--shards: %w", err)
	}
	if err != nil {
		return err
	}
	s.atStop(stopHubs, s.rejectHubs)
	s.atStop(closeServers, func() {
		ctx, cancel := context.WithTimeout(context.Background(), brokerTimeout)
		defer cancel()
		if err := s.broker.Close(ctx); err != nil {
			s.logger.Error("broker not stopped in order", "error", err)
		}
	})
	s.credentials = s.broker.Credentials()
	s.bound.NATS, s.bound.MQTT = s.broker.NATSAddr(), s.broker.MQTTAddr()
	for _, conns := range []**streams.Conns{&s.conns, &s.reads} {
		if *conns, err = s.broker.Connect(ctx); err != nil {
			return err
		}
		s.atStop(closeConnections, (*conns).Close)
	}
	return nil
}

// rejectHubs makes the embedded broker reject new hub connections. It runs while the callout still
// answers, so that no connecting hub waits for an answer that never comes.
func (s *infrastructure) rejectHubs() {
	ctx, cancel := context.WithTimeout(context.Background(), rejectHubsTimeout)
	defer cancel()
	s.broker.RejectHubs(ctx)
}

// connectBroker connects to an external broker.
func (s *infrastructure) connectBroker(ctx context.Context) (err error) {
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
		s.atStop(closeConnections, (*conns).Close)
	}
	return s.retry(ctx, brokerStorage, func(ctx context.Context) error {
		return broker.DeclareMQTTStreams(ctx, s.conns, s.cfg.LogReplicas)
	})
}
