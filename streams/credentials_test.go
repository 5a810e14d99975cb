package streams_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"hubcloud/streams"
	"hubcloud/streams/streamstest"
)

func credentials() streams.Credentials {
	return streams.Credentials{
		URL: "nats://127.0.0.1:4222", Shards: 2, IssuerSeed: "SA-seed",
		Users: map[streams.Account]streams.User{
			"SYS": {User: "sys", Password: "1"}, "CLOUD": {User: "cloud", Password: "2"},
			"SHARD00": {User: "shard00", Password: "3"},
			"SHARD01": {User: "shard01", Password: "4"},
		},
	}
}

// TestWriteCredentials checks that the file replaces an existing one, that only its owner can read
// it, and that ReadCredentials reads it.
func TestWriteCredentials(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "nats-credentials.json")
	for range 2 { // the second replaces the first
		streamstest.Must(t, credentials().Write(path))
	}
	info, err := os.Stat(path)
	streamstest.Must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode: got %v, want 0600", info.Mode())
	}
	got, err := streams.ReadCredentials(path)
	if err != nil || !reflect.DeepEqual(got, credentials()) {
		t.Errorf("ReadCredentials: got %#v, error %v, want %#v", got, err, credentials())
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("files in the folder: got %v, error %v, want only the credentials", entries, err)
	}
}

// TestInvalidCredentials checks that an invalid file is an error that does not quote the file, and
// that Validate and Connect reject incomplete credentials.
func TestInvalidCredentials(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := streams.ReadCredentials(filepath.Join(dir, "none.json")); !errors.Is(
		err, fs.ErrNotExist,
	) {
		t.Errorf("missing file: got %v, want fs.ErrNotExist", err)
	}
	path := filepath.Join(dir, "c.json")
	streamstest.Must(t, os.WriteFile(path, []byte(`{"url": hunter2}`), 0o600))
	if _, err := streams.ReadCredentials(path); err == nil ||
		strings.Contains(err.Error(), "hunter2") {
		t.Errorf("invalid file: got %v, want an error without the password", err)
	}
	for name, spoil := range map[string]func(*streams.Credentials){
		"no url":           func(c *streams.Credentials) { c.URL = "" },
		"no shards":        func(c *streams.Credentials) { c.Shards = 0 },
		"too many shards":  func(c *streams.Credentials) { c.Shards = streams.MaxShards + 1 },
		"missing shard":    func(c *streams.Credentials) { c.Shards = 3 },
		"no user of CLOUD": func(c *streams.Credentials) { delete(c.Users, streams.AccountCloud) },
	} {
		c := credentials()
		spoil(&c)
		if err := c.Validate(); err == nil {
			t.Errorf("Validate with %s: got nil, want an error", name)
		}
		if conns, err := streams.Connect(t.Context(), c); err == nil {
			conns.Close()
			t.Errorf("Connect with %s: got nil, want an error", name)
		}
	}
}
