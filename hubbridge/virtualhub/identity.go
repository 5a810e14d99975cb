package virtualhub

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
)

// identity is what enrolment gives a hub. It is one file, replaced as one: a key never stands
// beside another key's certificate.
type identity struct {
	HubID       string `json:"hub_id"`
	Key         string `json:"key"`         // PEM
	Certificate string `json:"certificate"` // PEM
	CA          string `json:"ca"`          // PEM
	Broker      string `json:"broker"`      // mqtts://HOST:PORT

	leaf  *x509.Certificate
	pair  tls.Certificate
	roots *x509.CertPool
	host  string // HOST:PORT of the broker
}

// parse checks an identity of the given hub and makes it ready for use.
func (i *identity) parse(id domain.HubID) error {
	if i.HubID != string(id) {
		return fmt.Errorf("the certificate is for hub %q", i.HubID)
	}
	pair, err := tls.X509KeyPair([]byte(i.Certificate), []byte(i.Key))
	if err != nil {
		return fmt.Errorf("certificate and key: %w", err)
	}
	i.pair, i.leaf = pair, pair.Leaf
	if i.leaf.Subject.CommonName != string(id) {
		return fmt.Errorf("the certificate is for %q", i.leaf.Subject.CommonName)
	}
	i.roots = x509.NewCertPool()
	if block, _ := pem.Decode([]byte(i.CA)); block == nil ||
		!i.roots.AppendCertsFromPEM([]byte(i.CA)) {
		return errors.New("ca is no certificate")
	}
	u, err := url.Parse(i.Broker)
	if err != nil || u.Scheme != "mqtts" || u.Hostname() == "" {
		return fmt.Errorf("broker %q is no mqtts://HOST:PORT", i.Broker)
	}
	if i.host = u.Host; u.Port() == "" {
		i.host = u.Hostname() + ":8883"
	}
	return nil
}

// renewable says whether the certificate has less than before left.
func (i *identity) renewable(now time.Time, before time.Duration) bool {
	return i.leaf.NotAfter.Sub(now) < before
}

// tlsConfig is for the connection to the broker: its certificate is verified with the CA from
// enrolment and nothing else.
func (i *identity) tlsConfig() *tls.Config {
	return &tls.Config{
		MinVersion:   tls.VersionTLS12,
		RootCAs:      i.roots,
		Certificates: []tls.Certificate{i.pair},
	}
}

const identityFile = "identity.json"

// readIdentity reads the identity of a directory; nil when there is none.
func readIdentity(dir string, id domain.HubID) (*identity, error) {
	if dir == "" {
		return nil, nil
	}
	raw, err := os.ReadFile(filepath.Join(dir, identityFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the hub's identity: %w", err)
	}
	i := &identity{}
	if err := json.Unmarshal(raw, i); err != nil {
		return nil, fmt.Errorf("read the hub's identity: %w", err)
	}
	if err := i.parse(id); err != nil {
		return nil, fmt.Errorf("the hub's identity in %s: %w", dir, err)
	}
	return i, nil
}

// write keeps the identity in a directory, readable by its owner alone.
func (i *identity) write(dir string) error {
	if dir == "" {
		return nil
	}
	path := filepath.Join(dir, identityFile)
	f, err := os.OpenFile(path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("keep the hub's identity: %w", err)
	}
	_, err = f.Write(mustJSON(i))
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("keep the hub's identity: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("keep the hub's identity: %w", err)
	}
	folder, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("keep the hub's identity: %w", err)
	}
	return errors.Join(folder.Sync(), folder.Close())
}
