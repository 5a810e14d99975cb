package doctor

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"hubcloud/cmd/hubcloud/internal/installation"
)

// authorityWarning is how long before its expiry the authority gets a warning. The certificates
// that it signs are valid for a year, and not longer than the authority.
const authorityWarning = 2 * 365 * 24 * time.Hour

// checkCertificates checks the expiry of the authority, of the broker's certificate, of the public
// port's certificate, and of the files of --certificate.
func checkCertificates(ctx context.Context, t *target, f *findings) {
	authority := checkAuthority(t, f)
	checkBrokerCertificate(ctx, t, authority, f)
	checkPublicCertificate(ctx, t, f)
	for _, file := range t.Certificates {
		chain, err := readCertificates(file)
		if err != nil {
			f.unclear("%v", err).todo(
				"check that the file of --certificate exists and is PEM",
			)
			continue
		}
		for _, c := range chain {
			t.Limits.judgeEnd(f, file+" ("+c.Subject.String()+")", c.NotAfter, "replace it before")
		}
	}
	if len(f.Details) == 0 {
		f.skip("no certificate is known here").todo("name files with --ca-cert and --certificate")
	}
}

// checkAuthority checks the authority and returns its certificate, nil when none is known here.
func checkAuthority(t *target, f *findings) *x509.Certificate {
	file, key := t.CACert, ""
	if file == "" && t.Started != nil {
		file = t.Started.CACert
	}
	if file == "" && t.DataDir != "" {
		file, key = t.path("ca", "ca.pem"), t.path("ca", "ca-key.pem")
	}
	if file == "" {
		return nil
	}
	chain, err := readCertificates(file)
	switch {
	case errors.Is(err, fs.ErrNotExist) && key != "" &&
		(t.Started == nil || t.Started.ExternalBroker):
		return nil // the service was never started, or the replica has no authority
	case err != nil:
		f.wrong("the authority's certificate: %v", err).todo(
			"restore it from a backup: without it no hub trusts the broker",
		)
		return nil
	}
	authority := chain[0]
	left := time.Until(authority.NotAfter)
	if left > t.Limits.soon() && left < authorityWarning {
		f.warn("the authority expires in %s, and its certificates not later", ago(left)).todo(
			"replace the authority, and the certificate of every hub, before: see certificate " +
				"rotation in the runbook",
		)
	} else {
		t.Limits.judgeEnd(f, "the authority", authority.NotAfter, "replace the authority "+
			"(--ca-cert, --ca-key) and the certificates of hubs before: see certificate rotation "+
			"in the runbook")
	}
	if info, err := os.Stat(key); err == nil && info.Mode().Perm()&0o077 != 0 {
		f.wrong("the authority's key can be read by others (%s)", info.Mode().Perm()).todo(
			"chmod 600 " + key,
		)
	}
	return authority
}

// checkBrokerCertificate connects to the listener for hubs and checks its certificate as a hub
// does.
func checkBrokerCertificate(
	ctx context.Context, t *target, authority *x509.Certificate, f *findings,
) {
	address, name := t.listener()
	if address == "" {
		return
	}
	shown, trusted, err := handshake(ctx, address, "")
	if err != nil {
		f.unclear(
			"the broker's listener for hubs at %s did not send its certificate: %v", address, err,
		).todo("check whether the service is ready: hubs cannot connect before")
		return
	}
	t.Limits.judgeEnd(
		f,
		"the broker's certificate",
		shown[0].NotAfter,
		"with the embedded broker, start the service again: it renews the certificate in its last "+
			"month; with an external broker, replace it",
	)
	if authority == nil {
		return
	}
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	roots.AddCert(authority)
	for _, c := range shown[1:] {
		between.AddCert(c)
	}
	_, err = shown[0].Verify(
		x509.VerifyOptions{Roots: roots, Intermediates: between, DNSName: name},
	)
	// judgeEnd has reported an expired certificate already.
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); err != nil &&
		(!ok || invalid.Reason != x509.Expired) {
		f.wrong("hubs reject the broker's certificate for %q: %v", name, err).todo(
			"it must be signed by the installation's authority, for the name in --public-mqtt or " +
				"--public-url",
		)
	}
	if len(trusted) > 0 &&
		!slices.ContainsFunc(
			trusted,
			func(subject []byte) bool { return string(subject) == string(authority.RawSubject) },
		) {
		f.wrong(
			"the broker's listener trusts another authority than the one that signs the hubs' " +
				"certificates",
		).todo(
			"configure the same authority in the broker's MQTT listener (ca_file) and in --ca-cert",
		)
	}
}

// listener returns the address of the listener for hubs from this machine, and its name for hubs.
func (t *target) listener() (address, name string) {
	address = t.Bound.MQTT
	public := ""
	if t.Started != nil {
		public = t.Started.PublicMQTT
	}
	if public != "" {
		if host, _, err := net.SplitHostPort(public); err == nil {
			name = host
		}
		if address == "" || t.Started.ExternalBroker {
			address = public
		}
	}
	address = installation.Dialable(address)
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return "", ""
	}
	return address, cmp.Or(name, host)
}

// checkPublicCertificate checks the expiry of the certificate of the public port. Its clients may
// trust authorities that this machine does not know.
func checkPublicCertificate(ctx context.Context, t *target, f *findings) {
	public, err := url.Parse(t.Bound.PublicURL)
	if !t.Bound.TLS || err != nil {
		return
	}
	shown, _, err := handshake(ctx, installation.Dialable(t.Bound.HTTP), public.Hostname())
	if err != nil {
		f.wrong("the public port sends no certificate for %s: %v", public.Host, err).todo(
			"the service's log has the reason (component certificate); with --acme-domain the " +
				"authority must reach port 443, or port 80 with --http-redirect",
		)
		return
	}
	t.Limits.judgeEnd(
		f, "the certificate of the public port", shown[0].NotAfter,
		"replace the files of --tls-cert and --tls-key; with --acme-domain see the service's log",
	)
}

// handshake returns the certificates that a listener sends to a client that asks for a name, which
// may be "", and the subjects of the authorities that it trusts.
func handshake(
	ctx context.Context, address, name string,
) (shown []*x509.Certificate, trusted [][]byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	dialer := &tls.Dialer{Config: &tls.Config{
		ServerName:         name,
		InsecureSkipVerify: true, // the caller verifies the certificate
		GetClientCertificate: func(request *tls.CertificateRequestInfo) (*tls.Certificate, error) {
			trusted = request.AcceptableCAs
			return &tls.Certificate{}, nil
		},
		VerifyPeerCertificate: func(raw [][]byte, _ [][]*x509.Certificate) error {
			for _, der := range raw {
				c, err := x509.ParseCertificate(der)
				if err != nil {
					return err
				}
				shown = append(shown, c)
			}
			return nil
		},
	}}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if conn != nil {
		conn.Close()
	}
	if len(shown) > 0 { // the listener then rejects the doctor, which has no certificate
		return shown, trusted, nil
	}
	if err == nil {
		err = errors.New("it sent none")
	}
	return nil, nil, err
}

// soon is for how long a certificate must still be valid.
func (l Limits) soon() time.Duration { return time.Duration(l.CertificateDays) * 24 * time.Hour }

// judgeEnd compares the expiry of a certificate with the limit.
func (l Limits) judgeEnd(f *findings, what string, end time.Time, advice string) {
	left := time.Until(end)
	on := end.UTC().Format(time.DateOnly)
	switch {
	case left <= 0:
		f.wrong("%s expired on %s", what, on).todo(advice)
	case left < l.soon():
		f.wrong("%s expires in %s, on %s", what, ago(left), on).todo(advice)
	default:
		f.note("%s is valid until %s", what, on)
	}
}

// readCertificates reads a PEM file with at least one certificate.
func readCertificates(file string) ([]*x509.Certificate, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var all []*x509.Certificate
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if !strings.HasSuffix(block.Type, "CERTIFICATE") {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, c)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s contains no certificate", file)
	}
	return all, nil
}
