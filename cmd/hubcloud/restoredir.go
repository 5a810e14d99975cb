package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"hubcloud/hubbridge/identity"
	"hubcloud/streams/backup"
	"hubcloud/streams/broker"
	"hubcloud/streams/durablefile"
)

const (
	// restoringFile is in a data directory from the beginning of a restore to its end.
	restoringFile = "RESTORING"
	restoringText = "A restore into this folder was begun and not finished: run it again " +
		"(hubcloud restore), or remove the folder.\n"
	// restoreSync is how often a broker syncs that is being restored into: everything is synced at
	// the end.
	restoreSync = time.Minute
	// closeTimeout bounds the end of that broker.
	closeTimeout = time.Minute
)

// mustBeWhole returns an error for a data directory with a restore that was not finished.
func (d dataDir) mustBeWhole() error {
	_, err := os.Stat(d.path(restoringFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return fmt.Errorf(
		"a restore into %s was not finished: run `hubcloud restore` again, it begins from the start",
		d,
	)
}

// takeForRestore takes an empty data directory, or one with what an interrupted restore has left,
// which it removes, and marks it. Anything else is left as it is.
func (d dataDir) takeForRestore() (lock *os.File, err error) {
	if err := d.mustBeEmpty(); err != nil {
		return nil, err
	}
	if lock, err = d.lock(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			lock.Close()
		}
	}()
	// Nobody can have begun anything there in between, now that it is locked.
	if err := d.mustBeEmpty(); err != nil {
		return nil, err
	}
	if err := durablefile.Write(d.path(restoringFile), []byte(restoringText), 0o644); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(string(d))
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		if slices.Contains(keptByRestore, entry.Name()) {
			continue
		}
		if err := os.RemoveAll(d.path(entry.Name())); err != nil {
			return nil, err
		}
	}
	return lock, nil
}

// keptByRestore may be in a data directory that is restored into: the mark, the lock, and what a
// file system of its own has at its root.
var keptByRestore = []string{restoringFile, "LOCK", "lost+found"}

// mustBeEmpty returns an error unless the data directory is empty, absent, or left by an
// interrupted restore.
func (d dataDir) mustBeEmpty() error {
	entries, err := os.ReadDir(string(d))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	has := func(name string) bool {
		return slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == name })
	}
	if has(restoringFile) {
		return nil
	}
	for _, entry := range entries {
		if !slices.Contains(keptByRestore, entry.Name()) {
			return fmt.Errorf(
				"nothing was restored: %s is not empty (it has %s). Stop the service that runs "+
					"there, if one does, move the folder away, "+
					"and restore into a new one",
				d,
				entry.Name(),
			)
		}
	}
	return nil
}

// intoDataDir restores into a data directory, with a broker that runs for that long and lets no hub
// in.
func (c *restoreCommand) intoDataDir(ctx context.Context, m backup.Manifest, out Streams) error {
	if c.LogReplicas != 1 {
		return usagef(
			"--log-replicas %d: a data directory holds one copy of each stream", c.LogReplicas,
		)
	}
	dir := dataDir(c.DataDir)
	lock, err := dir.takeForRestore()
	if err != nil {
		return err
	}
	defer lock.Close() // gives the lock free
	if err := c.copyFiles(m, dir); err != nil {
		return err
	}
	security, forget, err := restoreTLS(m, dir)
	if err != nil {
		return err
	}
	defer forget()
	server, err := broker.Start(ctx, broker.Config{
		DataDir: string(
			dir,
		), Shards: m.Shards, NATSAddr: "127.0.0.1:0", MQTTAddr: "127.0.0.1:0", MQTTTLS: security,
		SyncInterval: restoreSync,
		Log: slog.New(slog.NewTextHandler(out.Err, &slog.HandlerOptions{
			Level: slog.LevelError,
		})),
	})
	if err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	err = c.throughBroker(ctx, server, m, out)
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	if err = errors.Join(err, server.Close(closing)); err != nil {
		return fmt.Errorf("the restore was not finished: %w", err)
	}
	if err := durablefile.SyncTree(string(dir), nil); err != nil {
		return err
	}
	if err := os.Remove(dir.path(restoringFile)); err != nil {
		return err
	}
	return durablefile.Sync(string(dir))
}

func (c *restoreCommand) throughBroker(
	ctx context.Context, server *broker.Server, m backup.Manifest, out Streams,
) error {
	conns, err := server.Connect(ctx)
	if err != nil {
		return err
	}
	defer conns.Close()
	return c.restore(ctx, conns, m, out)
}

// copyFiles brings back what was kept beside the broker.
func (c *restoreCommand) copyFiles(m backup.Manifest, dir dataDir) error {
	for _, name := range []string{authorityCertificate, authorityKey, brokerCredentials} {
		if !m.Has(name) {
			continue
		}
		content, err := os.ReadFile(filepath.Join(c.Dir, filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		path := dir.path(filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := durablefile.Write(path, content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// restoreTLS is what the broker's listener for hubs needs to start, of the authority that was
// restored, or of one for the time of the restore.
func restoreTLS(m backup.Manifest, dir dataDir) (security *tls.Config, forget func(), err error) {
	home, forget := dir.path("ca"), func() {}
	if !m.Has(authorityKey) {
		if home, err = os.MkdirTemp("", "hubcloud-restore-"); err != nil {
			return nil, nil, err
		}
		// a temporary folder, with an authority that nobody trusts
		forget = func() { _ = os.RemoveAll(home) }
	}
	authority, err := identity.OpenAuthority(
		identity.AuthorityConfig{Dir: home, Log: slog.New(slog.DiscardHandler)},
	)
	if err != nil {
		forget()
		return nil, nil, fmt.Errorf("certificate authority of the backup: %w", err)
	}
	return authority.ServerTLS(), forget, nil
}
