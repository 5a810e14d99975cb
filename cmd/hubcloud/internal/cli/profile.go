package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"hubcloud/streams/durablefile"
)

// defaultProfile is the name of the profile that is used if none is named.
const defaultProfile = "default"

// errNoProfile reports that there is no profile of a name.
var errNoProfile = errors.New("no such profile")

// apiProfile is the address of an API and a key for it, as `hubcloud login` was given them.
// Profiles are in profiles.json in the user's configuration folder, readable by the user only. The
// file is replaced atomically; of two logins at the same moment, one may be lost.
type apiProfile struct {
	Name string `json:"-"`
	// URL is the base URL of the API, with its version.
	URL string `json:"url"`
	// Key is the API key, a secret.
	Key string `json:"key"`
}

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

// loadProfile returns the profile of a name. The error is errNoProfile if there is none.
func loadProfile(name string) (apiProfile, error) {
	profiles, _, err := readProfiles()
	if err != nil {
		return apiProfile{}, err
	}
	found, ok := profiles[name]
	if !ok {
		return apiProfile{}, fmt.Errorf("%w: %s; `hubcloud profiles` lists them", errNoProfile, name)
	}
	found.Name = name
	return found, nil
}

// listProfiles returns all profiles, by name.
func listProfiles() ([]apiProfile, error) {
	profiles, _, err := readProfiles()
	if err != nil {
		return nil, err
	}
	all := make([]apiProfile, 0, len(profiles))
	for _, name := range slices.Sorted(maps.Keys(profiles)) {
		found := profiles[name]
		found.Name = name
		all = append(all, found)
	}
	return all, nil
}

// saveProfile stores a profile, in place of one with the same name, and returns the path of the
// file.
func saveProfile(p apiProfile) (path string, err error) {
	profiles, path, err := readProfiles()
	if err != nil {
		return path, err
	}
	profiles[p.Name] = p
	return path, writeProfiles(path, profiles)
}

// removeProfile removes the profile of a name. The error is errNoProfile if there is none.
func removeProfile(name string) error {
	if _, err := loadProfile(name); err != nil {
		return err
	}
	profiles, path, err := readProfiles()
	if err != nil {
		return err
	}
	delete(profiles, name)
	return writeProfiles(path, profiles)
}

// readProfiles returns the profiles by name, and the path of their file. A file that others can
// read is rejected: its keys may be known.
func readProfiles() (profiles map[string]apiProfile, path string, err error) {
	if path, err = profilesPath(); err != nil {
		return nil, "", err
	}
	profiles = map[string]apiProfile{}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return profiles, path, nil
	}
	if err != nil {
		return nil, path, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, path, fmt.Errorf(
			"%s can be read by others: run `chmod 600 %s`, and replace its keys if they are known",
			path, path,
		)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, path, err
	}
	if err := json.Unmarshal(text, &profiles); err != nil {
		return nil, path, fmt.Errorf("%s is not a file of profiles: %w", path, err)
	}
	return profiles, path, nil
}

func writeProfiles(path string, profiles map[string]apiProfile) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	text, err := json.MarshalIndent(profiles, "", "  ")
	if err != nil {
		return err
	}
	return durablefile.Write(path, append(text, '\n'), 0o600)
}
