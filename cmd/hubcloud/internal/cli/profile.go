package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"

	"github.com/zalando/go-keyring"

	"hubcloud/streams/disk"
)

// defaultProfile is the name of the profile that is used if none is named.
const defaultProfile = "default"

// apiProfile is the address of an API and a key for it, as `hubcloud login` was given them.
type apiProfile struct {
	// URL is the base URL of the API, with its version.
	URL string `json:"url"`
	// Key is the API key, a secret; "" if the key store of the system has it.
	Key string `json:"key,omitempty"`
	// KeyID is the id of the key, which is not secret.
	KeyID string `json:"key_id"`
}

// keyStore is what the system's key store calls this program. The accounts of it are the profiles.
const keyStore = "hubcloud"

// hasKeyStore reports whether the system may have a key store. On Linux it is behind the bus of the
// user's session: without one, asking for it would start a bus.
func hasKeyStore() bool {
	return runtime.GOOS != "linux" || os.Getenv("DBUS_SESSION_BUS_ADDRESS") != ""
}

// set stores a profile under a name, its key in the system's key store if there is one and inFile
// does not ask for the file.
func (p profiles) set(name, url, key string, inFile bool) {
	profile := apiProfile{URL: url, Key: key, KeyID: keyIDOf(key)}
	switch {
	case !hasKeyStore():
	case inFile:
		_ = keyring.Delete(keyStore, name) // the key of an earlier login, if there is one
	case keyring.Set(keyStore, name, key) == nil:
		profile.Key = ""
	}
	p[name] = profile
}

// remove removes a profile, and its key from the system's key store.
func (p profiles) remove(name string) error {
	if p[name].Key == "" {
		if err := keyring.Delete(keyStore, name); err != nil && !errors.Is(err, keyring.ErrNotFound) {
			return fmt.Errorf("the key of profile %s stays in the system's key store: %w", name, err)
		}
	}
	delete(p, name)
	return nil
}

// secret returns the key of a profile.
func (p profiles) secret(name string) (string, error) {
	if key := p[name].Key; key != "" {
		return key, nil
	}
	key, err := keyring.Get(keyStore, name)
	if err != nil {
		return "", fmt.Errorf(
			"profile %s: its key cannot be read from the system's key store: %w; log in again, or "+
				"set HUBCLOUD_API_KEY", name, err,
		)
	}
	return key, nil
}

// profiles are the profiles by name. They are in profiles.json in the user's configuration folder,
// readable by the user only. The file is replaced atomically; of two logins at the same moment, one
// may be lost.
type profiles map[string]apiProfile

var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)

// checkProfileName returns an error unless name can be the name of a profile.
func checkProfileName(name string) error {
	if !nameForm.MatchString(name) {
		return fmt.Errorf(
			"--profile %q: must be 1 to 64 letters, digits, dots, - and _, "+
				"and begin with a letter or digit", name,
		)
	}
	return nil
}

// profilesPath returns the path of the file of profiles.
func profilesPath() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("the folder for profiles is unknown: %w", err)
	}
	return filepath.Join(dir, "hubcloud", "profiles.json"), nil
}

// readProfiles returns the profiles. A file that others can read is rejected: its keys may be
// known.
func readProfiles() (profiles, error) {
	path, err := profilesPath()
	if err != nil {
		return nil, err
	}
	all := profiles{}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf(
			"%s can be read by others: run `chmod 600 %s`, and replace its keys if they are known",
			path, path,
		)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("%s is not a file of profiles: %w", path, err)
	}
	return all, nil
}

// find returns the profile of a name.
func (p profiles) find(name string) (apiProfile, error) {
	found, ok := p[name]
	if !ok {
		return found, fmt.Errorf("no such profile: %s; `hubcloud profiles` lists them", name)
	}
	return found, nil
}

// write replaces the file with the profiles, and returns its path.
func (p profiles) write() (path string, err error) {
	if path, err = profilesPath(); err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	text, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return "", err
	}
	return path, disk.Write(path, append(text, '\n'), 0o600)
}
