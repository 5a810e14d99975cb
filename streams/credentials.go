package streams

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"hubcloud/streams/disk"
)

// Credentials are the addresses and logins of every account of the broker. The embedded broker
// writes them to <data>/nats-credentials.json; for an external cluster the operator provides such a
// file.
type Credentials struct {
	// URL is the broker's address, such as nats://127.0.0.1:4222, or several separated by commas.
	URL string `json:"url"`
	// CloudURL is the address of the server that keeps the streams of the account CLOUD. Empty
	// means URL, as for external servers. The embedded broker has two servers.
	CloudURL string `json:"cloud_url,omitempty"`
	// Shards is the number of shards, which is fixed when the installation is created.
	Shards int `json:"shards"`
	// Users has a user for SYS, CLOUD and every shard, and may have one for TAP.
	Users map[Account]User `json:"users"`
	// IssuerSeed is the seed of the account key that signs the answers of the auth callout.
	IssuerSeed string `json:"issuer_seed"`
	// Authority is the certificate (PEM) of the authority that signed the broker's certificate.
	// Without it TLS is used only if URL asks for it, and the system's authorities are trusted.
	Authority string `json:"authority,omitempty"`
}

// User is the login of one account.
type User struct {
	User     string `json:"user"`
	Password string `json:"password"`
}

// ReadCredentials reads a file that Write wrote. The error is fs.ErrNotExist if the file does not
// exist.
func ReadCredentials(path string) (Credentials, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return Credentials{}, fmt.Errorf("read the broker's credentials: %w", err)
	}
	var c Credentials
	if err := json.Unmarshal(raw, &c); err != nil {
		// The decoder's error can quote the text, which contains passwords.
		return Credentials{}, fmt.Errorf(
			"read the broker's credentials: %s is not a credentials file", path,
		)
	}
	if err := c.Validate(); err != nil {
		return Credentials{}, fmt.Errorf("read the broker's credentials: %s: %w", path, err)
	}
	return c, nil
}

// Validate returns an error that names the first missing or invalid field.
func (c Credentials) Validate() error {
	if c.URL == "" {
		return errors.New("url: must be set")
	}
	if c.Shards < 1 || c.Shards > MaxShards {
		return fmt.Errorf("shards: must be 1 to %d, got %d", MaxShards, c.Shards)
	}
	for _, account := range c.Accounts() {
		if c.Users[account].User == "" {
			return fmt.Errorf("users: no user for account %s", account)
		}
	}
	if _, err := c.TLS(); err != nil {
		return err
	}
	return nil
}

// TLS returns the TLS configuration for Authority, and nil without one.
func (c Credentials) TLS() (*tls.Config, error) {
	if c.Authority == "" {
		return nil, nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(c.Authority)) {
		return nil, errors.New("authority: not a PEM certificate")
	}
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, nil
}

// CipherSuites returns the cipher suites of TLS 1.2 for the listeners of the service: Go's secure
// ones without those in CBC mode, which scanners report.
func CipherSuites() []uint16 {
	var ids []uint16
	for _, suite := range tls.CipherSuites() {
		if slices.Contains(suite.SupportedVersions, tls.VersionTLS12) &&
			!strings.Contains(suite.Name, "_CBC_") {
			ids = append(ids, suite.ID)
		}
	}
	return ids
}

// Accounts returns every account that the service connects to: SYS, CLOUD, then the shards in
// order.
func (c Credentials) Accounts() []Account {
	accounts := []Account{AccountSys, AccountCloud}
	for i := range c.Shards {
		accounts = append(accounts, ShardAccount(i))
	}
	return accounts
}

// Write writes the credentials to a file that only its owner may read. It replaces an existing file
// atomically, also if the process or the machine crashes.
func (c Credentials) Write(path string) error {
	raw, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return fmt.Errorf("write the broker's credentials: %w", err)
	}
	if err := disk.Write(path, append(raw, '\n'), 0o600); err != nil {
		return fmt.Errorf("write the broker's credentials: %w", err)
	}
	return nil
}
