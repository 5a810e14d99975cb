package main

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"hubcloud/streams/durablefile"
)

// dataDir is the folder that holds everything an installation keeps on this machine.
//
//	LOCK                     held while a service runs on it
//	RESTORING                there until a restore is finished
//	replica-id               names this process over its restarts
//	endpoints.json           what the running service bound
//	nats-credentials.json    how to reach the broker
//	postgres.json            how to reach the database
//	service.json             how the service was started, for the doctor
//	nats/  postgres/  ca/    the broker's, the database's and the certificate authority's own
//	outbox/                  mails, on an installation without a mail server
//	dev.json  virtualhubs/   the demo's
type dataDir string

func (d dataDir) path(name ...string) string {
	return filepath.Join(append([]string{string(d)}, name...)...)
}

// errNotRunning says that no service runs on a data directory.
var errNotRunning = errors.New("no service is running")

// lock takes the data directory for this process, for as long as it lives; the system releases it
// even after a kill -9.
func (d dataDir) lock() (*os.File, error) {
	if err := os.MkdirAll(string(d), 0o755); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	file, err := os.OpenFile(d.path("LOCK"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		file.Close()
		return nil, fmt.Errorf(
			"another hubcloud is running on %s: stop it first, or give this one a --data-dir of its own",
			d,
		)
	}
	return file, nil
}

// replicaID names this replica. It is the same over restarts, so that what a killed process held is
// its own again at once.
func (d dataDir) replicaID() (string, error) {
	kept, err := os.ReadFile(d.path("replica-id"))
	if err == nil && len(strings.TrimSpace(string(kept))) > 0 {
		return strings.TrimSpace(string(kept)), nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	var entropy [8]byte
	if _, err := rand.Read(entropy[:]); err != nil {
		return "", err
	}
	id := hex.EncodeToString(entropy[:])
	return id, durablefile.Write(d.path("replica-id"), []byte(id+"\n"), 0o644)
}

// endpoints is what a running service bound: the content of endpoints.json.
type endpoints struct {
	HTTP  string `json:"http"`
	Admin string `json:"admin"`
	MQTT  string `json:"mqtt"`
	NATS  string `json:"nats"`
	// NATSCredentials names the file with the credentials for a broker that is not the service's
	// own.
	NATSCredentials string `json:"nats_credentials,omitempty"`
	// PublicURL is where the API is reached from outside, without /v1.
	PublicURL string `json:"public_url"`
}

func (d dataDir) writeEndpoints(e endpoints) error {
	text, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		return err
	}
	return durablefile.Write(d.path("endpoints.json"), append(text, '\n'), 0o644)
}

func (d dataDir) endpoints() (endpoints, error) {
	var e endpoints
	text, err := os.ReadFile(d.path("endpoints.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return e, fmt.Errorf(
			"%w on %s: start one with `hubcloud serve --data-dir %s`, or name another --data-dir",
			errNotRunning, d, d,
		)
	}
	if err != nil {
		return e, err
	}
	if err := json.Unmarshal(text, &e); err != nil {
		return e, fmt.Errorf("%s: %w", d.path("endpoints.json"), err)
	}
	return e, nil
}

// database is how to reach the database of the read models: the content of postgres.json. The URL
// may have a password in it.
type database struct {
	URL string `json:"url"`
}

func (d dataDir) writeDatabase(db database) error {
	text, err := json.MarshalIndent(db, "", "  ")
	if err != nil {
		return err
	}
	return durablefile.Write(d.path("postgres.json"), append(text, '\n'), 0o600)
}

func (d dataDir) database() (database, error) {
	var db database
	text, err := os.ReadFile(d.path("postgres.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return db, usagef(
			"no database is named in %s: give its --postgres-url, or the service's --data-dir",
			d.path("postgres.json"),
		)
	}
	if err != nil {
		return db, err
	}
	if err := json.Unmarshal(text, &db); err != nil {
		return db, fmt.Errorf("%s: %w", d.path("postgres.json"), err)
	}
	return db, nil
}
