package installation

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/hubbridge/identity"
	"hubcloud/streams"
	"hubcloud/streams/backup"
	"hubcloud/streams/broker"
	"hubcloud/streams/disk"
)

// The files that a backup has besides the broker's data, by their paths in the backup and in a data
// directory.
const (
	AuthorityCertificate = "ca/ca.pem"
	AuthorityKey         = "ca/ca-key.pem"
	BrokerCredentials    = CredentialsFile
)

const (
	// restoreSync is the sync interval of the broker that runs during a restore. The restore syncs
	// all files at its end.
	restoreSync = time.Minute
	// restoreCloseTimeout bounds the stop of that broker.
	restoreCloseTimeout = time.Minute
)

// Restore is a checked backup and how to restore it.
type Restore struct {
	// Backup is the folder with the backup, Manifest its checked manifest.
	Backup   string
	Manifest backup.Manifest
	// Replicas is the number of copies of each stream.
	Replicas int
	// Progress is called while the restore runs.
	Progress func(backup.Progress)
	// Logger gets errors of the broker that runs during a restore into a data directory.
	Logger *slog.Logger
}

// IntoBroker restores into an empty external broker. The error is
// backup.ErrNotEmpty when the broker has streams.
func (r Restore) IntoBroker(ctx context.Context, credentials streams.Credentials) error {
	conns, err := streams.Connect(
		ctx, credentials, nats.RetryOnFailedConnect(false), nats.Timeout(dialTimeout),
	)
	if err != nil {
		return err
	}
	defer conns.Close()
	if err := r.restore(ctx, conns); err != nil {
		return err
	}
	return RecordFormat(ctx, conns.Cloud)
}

// IntoDataDir restores into an empty data directory. A broker runs for that time; it accepts no
// hubs. Until the restore is complete, no service starts on the directory.
func (r Restore) IntoDataDir(ctx context.Context, dir Dir) error {
	lock, err := dir.BeginRestore()
	if err != nil {
		return err
	}
	defer lock.Release()
	if err := r.copyFiles(dir); err != nil {
		return err
	}
	listenerTLS, removeTLS, err := r.brokerTLS(dir)
	if err != nil {
		return err
	}
	defer removeTLS()
	server, err := broker.Start(ctx, broker.Config{
		DataDir: string(dir), Shards: r.Manifest.Shards, NATSAddr: "127.0.0.1:0",
		MQTTAddr: "127.0.0.1:0", MQTTTLS: listenerTLS, SyncInterval: restoreSync, Logger: r.Logger,
	})
	if err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	err = r.throughBroker(ctx, server)
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), restoreCloseTimeout)
	defer cancel()
	if err = errors.Join(err, server.Close(closing)); err != nil {
		return fmt.Errorf("the restore was not finished: %w", err)
	}
	if err := dir.RecordFormat(); err != nil {
		return err
	}
	return dir.FinishRestore()
}

func (r Restore) throughBroker(ctx context.Context, server *broker.Server) error {
	conns, err := server.Connect(ctx)
	if err != nil {
		return err
	}
	defer conns.Close()
	return r.restore(ctx, conns)
}

// restore restores the broker's data and gives the installation a new id.
func (r Restore) restore(ctx context.Context, conns *streams.Conns) error {
	return backup.Restore(ctx, conns, r.Manifest, backup.RestoreConfig{
		Dir: r.Backup, Replicas: r.Replicas, Origin: OperatorOrigin(), Progress: r.Progress,
		Adopt: func(ctx context.Context) error {
			buckets, err := streams.OpenBuckets(ctx, conns, AnyReplicas)
			if err != nil {
				return err
			}
			return ReplaceID(ctx, conns.Cloud, buckets.Installation)
		},
	})
}

// copyFiles restores the authority and the broker's credentials, as far as the backup has them.
func (r Restore) copyFiles(dir Dir) error {
	for _, name := range []string{AuthorityCertificate, AuthorityKey, BrokerCredentials} {
		if !r.Manifest.Has(name) {
			continue
		}
		content, err := os.ReadFile(filepath.Join(r.Backup, filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		path := dir.Path(filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := disk.Write(path, content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// brokerTLS returns the configuration that the broker's MQTT listener needs to start. It uses the
// restored authority, or a temporary one that remove deletes.
func (r Restore) brokerTLS(dir Dir) (config *tls.Config, remove func(), err error) {
	home, remove := dir.Path("ca"), func() {}
	if !r.Manifest.Has(AuthorityKey) {
		if home, err = os.MkdirTemp("", "hubcloud-restore-"); err != nil {
			return nil, nil, err
		}
		// A leftover would do no harm: no hub trusts this authority.
		remove = func() { _ = os.RemoveAll(home) }
	}
	authority, err := identity.OpenAuthority(
		identity.AuthorityConfig{Dir: home, Logger: slog.New(slog.DiscardHandler)},
	)
	if err != nil {
		remove()
		return nil, nil, fmt.Errorf("certificate authority of the backup: %w", err)
	}
	return authority.ServerTLS(), remove, nil
}
