package streams

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"hubcloud/streams/durablefile"
)

// Credentials are how to reach every account of the broker. The embedded broker writes them to
// <data>/nats-credentials.json; for a cluster of one's own the operator provides the same file.
type Credentials struct {
	// URL is the broker's address, such as nats://127.0.0.1:4222; several are separated by commas.
	URL string `json:"url"`
	// Shards is how many shards the installation has. It is fixed when the installation is made.
	Shards int `json:"shards"`
	// Users holds a user for SYS, CLOUD and every shard, and for TAP unless the broker was set up
	// before there were taps.
	Users map[Account]User `json:"users"`
	// IssuerSeed is the seed of the account key that signs the answers of the auth callout.
	IssuerSeed string `json:"issuer_seed"`
	// Authority is the certificate (PEM) of the authority that vouches for a broker that is reached
	// over TLS. Without one there is no TLS, or, if URL asks for it, with a certificate that the
	// system's authorities vouch for.
	Authority string `json:"authority,omitempty"`
}

// User is the login of one account.
type User struct {
	User     string `json:"user"`
	Password string `json:"password"`
}

// ReadCredentials reads a file that Write wrote. The error is an fs.ErrNotExist when there is none.
func ReadCredentials(path string) (Credentials, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return Credentials{}, fmt.Errorf("read the broker's credentials: %w", err)
	}
	var c Credentials
	if err := json.Unmarshal(raw, &c); err != nil {
		// The decoder's error can quote the text, which holds passwords.
		return Credentials{}, fmt.Errorf(
			"read the broker's credentials: %s is not a credentials file", path,
		)
	}
	if err := c.Validate(); err != nil {
		return Credentials{}, fmt.Errorf("read the broker's credentials: %s: %w", path, err)
	}
	return c, nil
}

// Validate returns an error that names what is missing for Connect.
func (c Credentials) Validate() error {
	if c.URL == "" {
		return errors.New("url is missing")
	}
	if c.Shards < 1 || c.Shards > MaxShards {
		return fmt.Errorf("shards is %d; 1 to %d are allowed", c.Shards, MaxShards)
	}
	for _, account := range c.Accounts() {
		if c.Users[account].User == "" {
			return fmt.Errorf("users has none for the account %s", account)
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
		return nil, errors.New("authority holds no PEM certificate")
	}
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, nil
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

// Write puts the credentials into a file that only its owner may read. It replaces a former file as
// a whole: a reader sees the old one or the new one, also after a crash.
func (c Credentials) Write(path string) error {
	raw, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return fmt.Errorf("write the broker's credentials: %w", err)
	}
	if err := durablefile.Write(path, append(raw, '\n'), 0o600); err != nil {
		return fmt.Errorf("write the broker's credentials: %w", err)
	}
	return nil
}
