package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/zalando/go-keyring"
)

// With a key store, the file of the profiles has no key; without one, or if it fails, it has.
func TestKeyStore(t *testing.T) {
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere")
	const key = "hc_dev_x"
	for name, c := range map[string]struct {
		failure error
		inFile  bool
		stored  bool // in the file
	}{
		"store": {}, "no store": {failure: keyring.ErrUnsupportedPlatform, stored: true},
		"file": {inFile: true, stored: true},
	} {
		if keyring.MockInit(); c.failure != nil {
			keyring.MockInitWithError(c.failure)
		}
		all := profiles{}
		all.set("p", "https://hubs.example.com/v1", key, c.inFile)
		text, err := json.Marshal(all)
		if got, secretErr := all.secret("p"); err != nil || secretErr != nil || got != key ||
			strings.Contains(string(text), key) != c.stored {
			t.Errorf("%s: got the key %q, %v, and the file %s", name, got, secretErr, text)
		}
		if err := all.remove("p"); err != nil {
			t.Errorf("%s: remove: %v", name, err)
		}
		if got, err := keyring.Get(keyStore, "p"); err == nil {
			t.Errorf("%s: the key store still has %q", name, got)
		}
	}
}
