package server

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"hubcloud/cmd/hubcloud/internal/datadir"
	"hubcloud/httpapi/mail"
	"hubcloud/streams"
	"hubcloud/streams/durablefile"
)

// finishStart puts what the start made on disk and says where the service listens; then /readyz
// says that it is ready. A crash or a power cut before leaves no installation that anybody has been
// told of. While the disk is full it waits for room, and what is up by then serves; ctx ends when
// the service is to stop.
func (s *Server) finishStart(ctx context.Context) error {
	for _, write := range s.postponed {
		if err := s.writeWithRoom(ctx, write); err != nil {
			return err
		}
	}
	if err := s.writeWithRoom(ctx, s.syncInstallation); err != nil {
		return fmt.Errorf("sync the data directory: %w", err)
	}
	if err := s.writeWithRoom(ctx, func() error { return s.dir.WriteEndpoints(s.bound) }); err != nil {
		return fmt.Errorf("write endpoints.json: %w", err)
	}
	s.health.started.Store(true)
	return nil
}

// syncInstallation puts on disk what a start has made: streams and buckets, settings, the
// authority, and the names of all of these. With --sync 2m the broker would do so later, and a
// power cut in between would leave half an installation. The database syncs by itself, and hub logs
// are not part of an installation.
func (s *Server) syncInstallation() error {
	return durablefile.SyncTree(string(s.dir), func(path string) bool {
		return path == s.dir.Path("postgres") ||
			strings.HasPrefix(filepath.Base(path), streams.HubStream(""))
	})
}

// writeStarted writes how the server was started to service.json, for the doctor.
func (s *Server) writeStarted() error {
	shares, err := s.cfg.shareFiles()
	if err != nil {
		return err
	}
	started := datadir.Started{
		PID: os.Getpid(), At: time.Now().UTC(),
		Roles: s.cfg.Roles, Environment: s.cfg.Environment,
		OwnBroker: s.cfg.NATSURL != "", OwnDatabase: s.cfg.PostgresURL != "",
		Sync: s.cfg.Sync, LogReplicas: s.cfg.LogReplicas,
		Connections: shares.api, HubConnections: shares.broker,
		CACert: s.cfg.CACert, PublicMQTT: s.cfg.PublicMQTT,
	}
	if s.cfg.SMTPURL != "" {
		server, err := mail.ParseServer(s.cfg.SMTPURL)
		if err != nil {
			return err
		}
		started.MailServer = server.WithoutLogin()
	}
	return s.dir.WriteStarted(started)
}
