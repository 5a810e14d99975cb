package installation

import (
	"slices"
	"time"
)

// Started describes how a service was started and why it ended, without secrets. The file
// service.json outlives the service and is readable by every user.
type Started struct {
	PID int `json:"pid"`
	// UID is the user that the process ran as.
	UID int       `json:"uid"`
	At  time.Time `json:"started_at"`
	// EndedAt is when the service ended, zero while it runs and after it was killed. Error is why
	// it ended; "" when it was told to stop.
	EndedAt time.Time `json:"ended_at,omitzero"`
	Error   string    `json:"error,omitempty"`
	// Version is the program's version, such as 1.4.0, and Commit the commit it was built from.
	Version string   `json:"version"`
	Commit  string   `json:"commit"`
	Roles   []string `json:"roles"`
	// Environment is `live` or `dev`.
	Environment string `json:"environment"`
	// ExternalBroker and ExternalDatabase report whether the service was started with --nats-url
	// and --postgres-url. Otherwise the service runs private ones.
	ExternalBroker   bool `json:"nats_url_given"`
	ExternalDatabase bool `json:"postgres_url_given"`
	LogReplicas      int  `json:"log_replicas"`
	// CACert is the path of --ca-cert, PublicMQTT the address at which hubs
	// reach the broker. Each is "" when its flag was not given.
	CACert     string `json:"ca_cert,omitempty"`
	PublicMQTT string `json:"public_mqtt,omitempty"`
	// MailServer is the mail server's URL without its login; "" when mails go into a folder.
	MailServer string `json:"mail_server,omitempty"`
}

// HasRole reports whether the service was started with a role.
func (s *Started) HasRole(role string) bool { return slices.Contains(s.Roles, role) }

// WriteStarted writes service.json.
func (d Dir) WriteStarted(s Started) error { return d.write(StartedFile, s, 0o644) }

// Started reads service.json. The error is an fs.ErrNotExist when the file does not exist.
func (d Dir) Started() (*Started, error) {
	var s Started
	if err := d.read(StartedFile, &s); err != nil {
		return nil, err
	}
	return &s, nil
}
