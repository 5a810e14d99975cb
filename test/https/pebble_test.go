package https

import (
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/letsencrypt/challtestsrv"
	"github.com/letsencrypt/pebble/v2/ca"
	"github.com/letsencrypt/pebble/v2/db"
	"github.com/letsencrypt/pebble/v2/va"
	"github.com/letsencrypt/pebble/v2/wfe"

	"hubcloud/streams/streamstest"
)

// authority is an ACME server.
type authority struct {
	// directory is the URL of the ACME directory; caFile is a file with the certificate that the
	// server itself shows.
	directory, caFile string
	// roots has the root of the certificates that it issues.
	roots *x509.CertPool
	stop  func()
}

// startAuthority runs pebble until the test ends or stop is called. It checks challenges at the
// ports of the addresses http and https, and resolves names as hosts says.
func startAuthority(
	t *testing.T, http, https string, hosts map[string]string,
) *authority {
	t.Helper()
	resolver := streamstest.FreeAddress(t)
	quiet := log.New(io.Discard, "", 0)
	dns, err := challtestsrv.New(challtestsrv.Config{Log: quiet, DNSAddrs: []string{resolver}})
	streamstest.Must(t, err)
	dns.SetDefaultDNSIPv4("")
	dns.SetDefaultDNSIPv6("")
	for name, address := range hosts {
		dns.AddDNSARecord(name, []string{address})
	}
	go dns.Run()
	t.Cleanup(dns.Shutdown)
	store := db.NewMemoryStore()
	issuer := ca.New(quiet, store, "", "ecdsa", 0, 1, map[string]ca.Profile{"default": {}})
	validation := va.New(quiet, port(t, http), port(t, https), false, resolver, store)
	front := wfe.New(
		quiet, store, validation, issuer, []string{"ca.example"}, false, false, 0, 0,
	)
	server := httptest.NewTLSServer(front.Handler())
	t.Cleanup(server.Close)
	a := &authority{
		directory: server.URL + wfe.DirectoryPath, roots: x509.NewCertPool(), stop: server.Close,
		caFile: filepath.Join(t.TempDir(), "acme-ca.pem"),
	}
	a.roots.AppendCertsFromPEM(issuer.GetRootCert(0).PEM())
	shown := pem.EncodeToMemory(
		&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw},
	)
	streamstest.Must(t, os.WriteFile(a.caFile, shown, 0o600))
	return a
}

// port returns the port of HOST:PORT.
func port(t *testing.T, address string) int {
	t.Helper()
	_, text, err := net.SplitHostPort(address)
	streamstest.Must(t, err)
	number, err := strconv.Atoi(text)
	streamstest.Must(t, err)
	return number
}
