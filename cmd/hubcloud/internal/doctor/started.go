package doctor

import (
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// Started is what a service leaves in its data directory about how it was started, without anything
// secret: `service.json`. It stays there when the service ends.
type Started struct {
	PID   int       `json:"pid"`
	At    time.Time `json:"started_at"`
	Roles []string  `json:"roles"`
	// Environment is `live` or `dev`.
	Environment string `json:"environment"`
	// OwnBroker and OwnDatabase say that the service uses those of somebody else rather than
	// private ones.
	OwnBroker   bool `json:"nats_url_given"`
	OwnDatabase bool `json:"postgres_url_given"`
	// Sync is --sync; it only matters to a private broker.
	Sync string `json:"sync"`
	// Connections is how many connections of API clients there may be, HubConnections how many to
	// an embedded broker.
	Connections    int `json:"connections"`
	HubConnections int `json:"hub_connections"`
	LogReplicas    int `json:"log_replicas"`
	// CACert is the authority's certificate, PublicMQTT where hubs reach the broker, each "" when
	// it was not given.
	CACert     string `json:"ca_cert,omitempty"`
	PublicMQTT string `json:"public_mqtt,omitempty"`
	// MailServer is the mail server without its login, as a URL; "" when mails go into a folder.
	MailServer string `json:"mail_server,omitempty"`
}

// ReadStarted reads a file that Write wrote. The error is an fs.ErrNotExist when there is none.
func ReadStarted(path string) (*Started, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var s Started
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &s, nil
}

// Encode writes it as JSON for people.
func (s Started) Encode() ([]byte, error) {
	text, err := json.MarshalIndent(s, "", "  ")
	return append(text, '\n'), err
}

// has says whether the service was started with a role.
func (s *Started) has(role string) bool {
	for _, r := range s.Roles {
		if r == role {
			return true
		}
	}
	return false
}
