package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"hubcloud/cmd/hubcloud/internal/doctor"
	"hubcloud/httpapi/mail"
	"hubcloud/streams"
	"hubcloud/streams/durablefile"
)

// startedFile says how the service on a data directory was started. It outlives the service, and
// anybody may read it.
const startedFile = "service.json"

// finishStart puts what the start made on disk and says where the service listens; then /readyz
// says that it is ready. A crash or a power cut before leaves no installation that anybody has been
// told of. While the disk is full it waits for room, and what is up by then serves; ctx ends when
// the service is to stop.
func (s *service) finishStart(ctx context.Context) error {
	for _, write := range s.later {
		if err := s.writeWithRoom(ctx, write); err != nil {
			return err
		}
	}
	if err := s.writeWithRoom(ctx, s.syncInstallation); err != nil {
		return fmt.Errorf("sync the data directory: %w", err)
	}
	if err := s.writeWithRoom(ctx, func() error { return s.dir.writeEndpoints(s.bound) }); err != nil {
		return fmt.Errorf("write endpoints.json: %w", err)
	}
	s.health.started.Store(true)
	return nil
}

// syncInstallation puts on disk what a start has made: streams and buckets, settings, the
// authority, and the names of all of these. With --sync 2m the broker would do so later, and a
// power cut in between would leave half an installation. The database syncs by itself, and hub logs
// are not part of an installation.
func (s *service) syncInstallation() error {
	return durablefile.SyncTree(string(s.dir), func(path string) bool {
		return path == s.dir.path("postgres") ||
			strings.HasPrefix(filepath.Base(path), streams.HubStream(""))
	})
}

// writeStarted writes down what the doctor wants to know of a service, and nothing that is secret.
func (d dataDir) writeStarted(f *serviceFlags) error {
	shares, err := f.shareFiles()
	if err != nil {
		return err
	}
	started := doctor.Started{
		Connections: shares.api, HubConnections: shares.broker,
		PID: os.Getpid(), At: time.Now().UTC(), Roles: f.Roles, Environment: f.Environment,
		OwnBroker: f.NATSURL != "", OwnDatabase: f.PostgresURL != "", Sync: f.Sync,
		LogReplicas: f.LogReplicas,
		CACert:      f.CACert, PublicMQTT: f.PublicMQTT,
	}
	if f.SMTPURL != "" {
		server, err := mail.ParseServer(f.SMTPURL)
		if err != nil {
			return err
		}
		started.MailServer = server.WithoutLogin()
	}
	text, err := started.Encode()
	if err != nil {
		return err
	}
	return durablefile.Write(d.path(startedFile), text, 0o644)
}
