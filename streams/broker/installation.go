package broker

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/nats-io/nkeys"

	"hubcloud/streams"
	"hubcloud/streams/durablefile"
)

const (
	credentialsFile  = "nats-credentials.json"
	storeFolder      = "nats"
	installationFile = "installation.json"
)

// ErrShards says that an installation was asked to run with another number of shards than it was
// made with.
var ErrShards = errors.New("the number of shards of an installation cannot change")

// installation is what was settled when the installation was made. It is kept beside the streams,
// which are worth nothing without it.
type installation struct {
	// ServerName is the broker's name. JetStream and MQTT sessions are bound to it.
	ServerName string `json:"server_name"`
	Shards     int    `json:"shards"`
}

// openInstallation reads what was settled, or settles it.
func openInstallation(dataDir string, shards int) (installation, error) {
	store := filepath.Join(dataDir, storeFolder)
	path := filepath.Join(store, installationFile)
	raw, err := os.ReadFile(path)
	switch {
	case err == nil:
		return readInstallation(path, raw, shards)
	case !errors.Is(err, fs.ErrNotExist):
		return installation{}, err
	}
	if entries, err := os.ReadDir(filepath.Join(store, "jetstream")); err == nil &&
		len(entries) > 0 {
		return installation{}, fmt.Errorf(
			"%s holds streams, but %s is missing, which says over how many shards: put it back from a backup",
			store, path,
		)
	}
	if shards == 0 {
		shards = DefaultShards
	}
	var entropy [4]byte
	rand.Read(entropy[:]) // never fails: it ends the program instead
	made := installation{ServerName: "hubcloud-" + hex.EncodeToString(entropy[:]), Shards: shards}
	if err := os.MkdirAll(store, 0o700); err != nil {
		return installation{}, err
	}
	return made, made.write(path)
}

func readInstallation(path string, raw []byte, shards int) (installation, error) {
	var found installation
	if err := json.Unmarshal(raw, &found); err != nil || found.ServerName == "" ||
		found.Shards < 1 ||
		found.Shards > streams.MaxShards {
		return installation{}, fmt.Errorf(
			"%s does not say how the installation was made: put it back from a backup", path,
		)
	}
	if shards != 0 && shards != found.Shards {
		return installation{}, fmt.Errorf(
			"%w: this one was made with %d, and %d are asked for", ErrShards, found.Shards, shards,
		)
	}
	return found, nil
}

// write replaces the file as a whole, also over a power cut.
func (i installation) write(path string) error {
	raw, err := json.MarshalIndent(i, "", "  ")
	if err != nil {
		return err
	}
	return durablefile.Write(path, append(raw, '\n'), 0o600)
}

// openCredentials reads the credentials, or makes them.
func openCredentials(dataDir string, shards int) (streams.Credentials, error) {
	path := filepath.Join(dataDir, credentialsFile)
	c, err := streams.ReadCredentials(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return newCredentials(shards)
	case err != nil:
		return streams.Credentials{}, fmt.Errorf("%w; remove the file to have new ones made", err)
	case c.Shards != shards:
		return streams.Credentials{}, fmt.Errorf(
			"%s is of an installation with %d shards, this one has %d; remove the file to have new ones made",
			path, c.Shards, shards,
		)
	}
	if _, ok := c.Users[streams.AccountTap]; !ok {
		// Made before there were taps. The server writes the file once it listens.
		c.Users[streams.AccountTap] = newUser(streams.AccountTap)
	}
	return c, nil
}

func newCredentials(shards int) (streams.Credentials, error) {
	issuer, err := nkeys.CreateAccount()
	if err != nil {
		return streams.Credentials{}, err
	}
	seed, err := issuer.Seed()
	if err != nil {
		return streams.Credentials{}, err
	}
	c := streams.Credentials{
		Shards:     shards,
		Users:      map[streams.Account]streams.User{},
		IssuerSeed: string(seed),
	}
	for _, account := range append(c.Accounts(), streams.AccountTap) {
		c.Users[account] = newUser(account)
	}
	return c, nil
}

// newUser makes a user with a password that nobody can guess.
func newUser(account streams.Account) streams.User {
	var entropy [32]byte
	rand.Read(entropy[:]) // never fails: it ends the program instead
	return streams.User{
		User:     strings.ToLower(string(account)),
		Password: base64.RawURLEncoding.EncodeToString(entropy[:]),
	}
}
