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
	"hubcloud/streams/disk"
)

const (
	credentialsFile  = "nats-credentials.json"
	storeFolder      = "nats"
	installationFile = "installation.json"
)

// ErrShards reports a number of shards that is not the installation's.
var ErrShards = errors.New("the number of shards of an installation cannot change")

// installation has the settings that are fixed when the installation is created. Its file is kept
// beside the streams, which are useless without it.
type installation struct {
	// ServerName is the broker's name, to which JetStream and MQTT sessions are bound.
	ServerName string `json:"server_name"`
	Shards     int    `json:"shards"`
}

// stores returns the folders of the streams of both servers.
func stores(dataDir string) []string {
	hubs := filepath.Join(dataDir, storeFolder)
	return []string{hubs, filepath.Join(hubs, durableFolder)}
}

// openInstallation reads the installation's settings, or creates them for an empty data directory.
// It returns ErrShards if shards is neither 0 nor the installation's number.
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
	for _, store := range stores(dataDir) {
		if entries, err := os.ReadDir(filepath.Join(store, "jetstream")); err == nil &&
			len(entries) > 0 {
			return installation{}, fmt.Errorf(
				"%s has streams, but %s with their number of shards is missing: restore it from a "+
					"backup",
				store, path,
			)
		}
	}
	if shards == 0 {
		shards = DefaultShards
	}
	var entropy [4]byte
	rand.Read(entropy[:]) // never returns an error
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
		return installation{}, fmt.Errorf("%s is damaged: restore it from a backup", path)
	}
	if shards != 0 && shards != found.Shards {
		return installation{}, fmt.Errorf("%w: it has %d, got %d", ErrShards, found.Shards, shards)
	}
	return found, nil
}

// write replaces the file atomically, also if power is cut.
func (i installation) write(path string) error {
	raw, err := json.MarshalIndent(i, "", "  ")
	if err != nil {
		return err
	}
	return disk.Write(path, append(raw, '\n'), 0o600)
}

// openCredentials reads the credentials, or generates them if there are none.
func openCredentials(dataDir string, shards int) (streams.Credentials, error) {
	path := filepath.Join(dataDir, credentialsFile)
	c, err := streams.ReadCredentials(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return newCredentials(shards)
	case err != nil:
		return streams.Credentials{}, fmt.Errorf(
			"%w; remove the file to generate new credentials", err,
		)
	case c.Shards != shards:
		return streams.Credentials{}, fmt.Errorf(
			"%s belongs to an installation with %d shards, this one has %d; remove the file to "+
				"generate new credentials",
			path,
			c.Shards,
			shards,
		)
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

// newUser returns a user of the account with a random password of 256 bits.
func newUser(account streams.Account) streams.User {
	var entropy [32]byte
	rand.Read(entropy[:]) // never returns an error
	return streams.User{
		User:     strings.ToLower(string(account)),
		Password: base64.RawURLEncoding.EncodeToString(entropy[:]),
	}
}
