package check

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"hubcloud/streams/disk"
)

// stateFile is the name of the file in Config.State, beside the files of the authority.
const stateFile = "check.json"

// keptState is what Config.State keeps of a check, beside the authority.
type keptState struct {
	Serial   string `json:"serial"`
	Secret   string `json:"secret"`
	HTTPPort int    `json:"http_port"`
	MQTTPort int    `json:"mqtt_port"`
	// Certificates are the fingerprints of the certificates of the hub, the last one issued at the
	// end.
	Certificates []string `json:"certificates"`
}

// readState returns what a folder keeps; nothing for "" and for a new folder.
func readState(dir string) (kept keptState, err error) {
	if dir == "" {
		return kept, nil
	}
	text, err := os.ReadFile(filepath.Join(dir, stateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return kept, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &kept)
	}
	if err != nil {
		return kept, &ConfigError{"state", fmt.Sprintf("cannot be read: %v", err)}
	}
	return kept, nil
}

// complete returns cfg with what is kept in place of zero values.
func (kept keptState) complete(cfg Config) Config {
	if cfg.Serial == "" || cfg.Serial == kept.Serial {
		cfg.Serial, cfg.Secret = kept.Serial, cmp.Or(cfg.Secret, kept.Secret)
	}
	cfg.HTTPPort = cmp.Or(cfg.HTTPPort, kept.HTTPPort)
	cfg.MQTTPort = cmp.Or(cfg.MQTTPort, kept.MQTTPort)
	return cfg
}

// saveState writes what Config.State keeps.
func (c *Check) saveState() error {
	if c.cfg.State == "" {
		return nil
	}
	text, err := json.MarshalIndent(keptState{
		Serial: c.cfg.Serial, Secret: c.cfg.Secret, HTTPPort: portOf(c.http),
		MQTTPort: portOf(c.mqtt), Certificates: c.inventory.fingerprints(),
	}, "", "  ")
	if err == nil {
		err = disk.Write(filepath.Join(c.cfg.State, stateFile), text, 0o600)
	}
	if err != nil {
		return &ConfigError{"state", err.Error()}
	}
	return nil
}

func portOf(listener net.Listener) int {
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	number, _ := strconv.Atoi(port) // an address of a listener has a port
	return number
}
