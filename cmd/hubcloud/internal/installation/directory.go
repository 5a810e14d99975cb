package installation

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

	"hubcloud/streams/disk"
)

// The names of files that other packages refer to.
const (
	// EndpointsFile has the addresses of the running service.
	EndpointsFile = "endpoints.json"
	// DatabaseFile has the database's URL.
	DatabaseFile = "postgres.json"
	// StartedFile describes how the service was last started.
	StartedFile = "service.json"
	// FormatFile has the format of the directory.
	FormatFile = "format.json"
	// CredentialsFile has the broker's address and passwords.
	CredentialsFile = "nats-credentials.json"

	lockFile      = "LOCK"
	replicaIDFile = "replica-id"
)

// ErrNotRunning reports that no service runs on a data directory.
var ErrNotRunning = errors.New("no service is running")

// Dir is the path of a data directory.
type Dir string

// Path returns the path of a file or folder in the directory.
func (d Dir) Path(name ...string) string {
	return filepath.Join(append([]string{string(d)}, name...)...)
}

// Lock creates the directory if needed and locks it for this process.
func (d Dir) Lock() (*disk.Lock, error) {
	if err := os.MkdirAll(string(d), 0o755); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	lock, err := disk.AcquireLock(d.Path(lockFile))
	if errors.Is(err, disk.ErrInUse) {
		return nil, fmt.Errorf(
			"another hubcloud is running on %s: stop it first, or use another --data-dir", d,
		)
	}
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	return lock, nil
}

// ReplicaID returns the id of the replica on this directory and creates the id on the first call.
// The id stays the same over restarts, so that a restarted replica owns the leases of its killed
// predecessor.
func (d Dir) ReplicaID() (string, error) {
	text, err := os.ReadFile(d.Path(replicaIDFile))
	if err == nil && len(strings.TrimSpace(string(text))) > 0 {
		return strings.TrimSpace(string(text)), nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	var entropy [8]byte
	if _, err := rand.Read(entropy[:]); err != nil {
		return "", err
	}
	id := hex.EncodeToString(entropy[:])
	return id, disk.Write(d.Path(replicaIDFile), []byte(id+"\n"), 0o644)
}

// Endpoints are the addresses of a running service, as endpoints.json has them.
type Endpoints struct {
	// HTTP, Admin, MQTT and NATS are bound addresses, HOST:PORT. HTTP is "" without the role api.
	// With an external broker, NATS has its addresses, separated by commas.
	HTTP  string `json:"http"`
	Admin string `json:"admin"`
	MQTT  string `json:"mqtt"`
	NATS  string `json:"nats"`
	// TLS reports whether HTTP speaks HTTPS. HTTPRedirect is then the address of --http-redirect,
	// if there is one.
	TLS          bool   `json:"tls,omitempty"`
	HTTPRedirect string `json:"http_redirect,omitempty"`
	// NATSCredentials is the path of the credentials file for an external broker; "" for the
	// embedded broker.
	NATSCredentials string `json:"nats_credentials,omitempty"`
	// PublicURL is the URL of the API for clients elsewhere, without /v1.
	PublicURL string `json:"public_url"`
}

// EmbeddedBroker reports whether the service runs the broker in its own process.
func (e Endpoints) EmbeddedBroker() bool { return e.NATSCredentials == "" }

// WriteEndpoints writes endpoints.json.
func (d Dir) WriteEndpoints(e Endpoints) error {
	return d.write(EndpointsFile, e, 0o644)
}

// RemoveEndpoints removes endpoints.json if it exists.
func (d Dir) RemoveEndpoints() error {
	err := os.Remove(d.Path(EndpointsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Endpoints reads endpoints.json. The error is ErrNotRunning when the file does not exist.
func (d Dir) Endpoints() (Endpoints, error) {
	var e Endpoints
	err := d.read(EndpointsFile, &e)
	if errors.Is(err, fs.ErrNotExist) {
		return e, fmt.Errorf(
			"%w on %s: start one with `hubcloud serve --data-dir %s`, or name another --data-dir",
			ErrNotRunning, d, d,
		)
	}
	return e, err
}

// Database is the content of postgres.json.
type Database struct {
	// URL is a secret: it may contain a password.
	URL string `json:"url"`
}

// WriteDatabase writes postgres.json, readable by its owner only.
func (d Dir) WriteDatabase(db Database) error {
	return d.write(DatabaseFile, db, 0o600)
}

// Database reads postgres.json. The error is a UsageError when the file does not exist.
func (d Dir) Database() (Database, error) {
	var db Database
	err := d.read(DatabaseFile, &db)
	if errors.Is(err, fs.ErrNotExist) {
		return db, Usagef(
			"no database is named in %s: give its --postgres-url, or the service's --data-dir",
			d.Path(DatabaseFile),
		)
	}
	return db, err
}

// write replaces a file with content as indented JSON.
func (d Dir) write(name string, content any, mode fs.FileMode) error {
	text, err := json.MarshalIndent(content, "", "  ")
	if err != nil {
		return err
	}
	return disk.Write(d.Path(name), append(text, '\n'), mode)
}

// read decodes a JSON file. The error is an fs.ErrNotExist when the file does not exist.
func (d Dir) read(name string, content any) error {
	text, err := os.ReadFile(d.Path(name))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, content); err != nil {
		return fmt.Errorf("%s: %w", d.Path(name), err)
	}
	return nil
}
