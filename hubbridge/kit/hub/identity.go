package hub

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/disk"
)

const identityFile = "identity.json"

// identity is what a hub needs to connect: the result of an enrolment.
type identity struct {
	HubID       string `json:"hub_id"`
	Key         string `json:"key"`         // PEM
	Certificate string `json:"certificate"` // PEM
	CA          string `json:"ca"`          // PEM
	Broker      string `json:"broker"`      // mqtts://HOST:PORT

	pair    tls.Certificate
	roots   *x509.CertPool
	host    string // the name that the broker's certificate must have
	address string
}

// parse validates the identity of the hub id and decodes its certificates.
func (i *identity) parse(id domain.HubID) error {
	if i.HubID != string(id) {
		return fmt.Errorf("hub_id: is %q, must be %q", i.HubID, id)
	}
	pair, err := tls.X509KeyPair([]byte(i.Certificate), []byte(i.Key))
	if err != nil {
		return fmt.Errorf("certificate and key: %w", err)
	}
	if name := pair.Leaf.Subject.CommonName; name != string(id) {
		return fmt.Errorf("certificate: is for %q, must be for %q", name, id)
	}
	i.pair, i.roots = pair, x509.NewCertPool()
	if block, _ := pem.Decode([]byte(i.CA)); block == nil || !i.roots.AppendCertsFromPEM([]byte(i.CA)) {
		return errors.New("ca: must be a PEM certificate")
	}
	u, err := url.Parse(i.Broker)
	if err != nil || u.Scheme != "mqtts" || u.Hostname() == "" {
		return fmt.Errorf("broker: is %q, must be mqtts://HOST:PORT", i.Broker)
	}
	i.host = u.Hostname()
	if i.address = u.Host; u.Port() == "" {
		i.address = u.Hostname() + ":8883"
	}
	return nil
}

// notAfter returns the end of the certificate's validity.
func (i *identity) notAfter() time.Time { return i.pair.Leaf.NotAfter }

// expiresWithin reports whether the certificate is valid for less than d from now.
func (i *identity) expiresWithin(d time.Duration, now time.Time) bool {
	return i.notAfter().Sub(now) < d
}

// tlsConfig returns a new configuration for a connection to the broker. It trusts the CA from
// enrolment and no other.
func (i *identity) tlsConfig() *tls.Config {
	return &tls.Config{
		MinVersion:   tls.VersionTLS12,
		RootCAs:      i.roots,
		ServerName:   i.host,
		Certificates: []tls.Certificate{i.pair},
	}
}

// readIdentity reads the identity of hub id from dir. It returns nil if dir is empty or holds none.
func readIdentity(dir string, id domain.HubID) (*identity, error) {
	if dir == "" {
		return nil, nil
	}
	raw, err := os.ReadFile(filepath.Join(dir, identityFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read identity: %w", err)
	}
	i := &identity{}
	if err := json.Unmarshal(raw, i); err != nil {
		return nil, fmt.Errorf("read identity: %w", err)
	}
	if err := i.parse(id); err != nil {
		return nil, fmt.Errorf("identity in %s: %w", dir, err)
	}
	return i, nil
}

// write replaces the identity in dir, readable by its owner alone. It does nothing if dir is empty.
func (i *identity) write(dir string) error {
	if dir == "" {
		return nil
	}
	raw, err := json.Marshal(i)
	if err == nil {
		err = disk.Write(filepath.Join(dir, identityFile), raw, 0o600)
	}
	if err != nil {
		return fmt.Errorf("write identity: %w", err)
	}
	return nil
}
