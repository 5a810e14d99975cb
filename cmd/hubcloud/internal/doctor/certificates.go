package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"slices"
	"strings"
	"time"
)

// authorityWarning is how long before its end the authority is worth a warning: what it signs lasts
// a year, and no longer than itself.
const authorityWarning = 2 * 365 * 24 * time.Hour

// checkCertificates looks at the end of the authority, of the broker's certificate as hubs are
// shown it, of the hubs' own, and of files that were named.
func checkCertificates(ctx context.Context, p *patient, f *findings) {
	authority := checkAuthority(p, f)
	checkBrokerCertificate(ctx, p, authority, f)
	checkHubCertificates(ctx, p, f)
	for _, file := range p.Certificates {
		chain, err := readCertificates(file)
		if err != nil {
			f.add(
				Unknown, err.Error(),
				"see whether the file that is named with --certificate is there, and is PEM",
			)
			continue
		}
		for _, c := range chain {
			p.judgeEnd(f, file+" ("+c.Subject.String()+")", c.NotAfter, "replace it before")
		}
	}
	if len(f.details) == 0 {
		f.add(
			Skipped, "there is no certificate to look at from here",
			"name files with --ca-cert and --certificate",
		)
	}
}

// checkAuthority gives the authority's certificate, nil when there is none here.
func checkAuthority(p *patient, f *findings) *x509.Certificate {
	file, key := p.CACert, ""
	if file == "" && p.Started != nil {
		file = p.Started.CACert
	}
	if file == "" && p.DataDir != "" {
		file, key = p.path("ca", "ca.pem"), p.path("ca", "ca-key.pem")
	}
	if file == "" {
		return nil
	}
	chain, err := readCertificates(file)
	switch {
	case errors.Is(err, fs.ErrNotExist) && key != "" && (p.Started == nil || p.Started.OwnBroker):
		return nil // never started, or a replica that has none
	case err != nil:
		f.add(
			Wrong, fmt.Sprintf("the authority's certificate: %v", err),
			"put it back from a backup: without it no hub trusts the broker any more",
		)
		return nil
	}
	authority := chain[0]
	left := time.Until(authority.NotAfter)
	if left > p.soon() && left < authorityWarning {
		f.add(
			Warning,
			fmt.Sprintf(
				"the authority ends in %s, and nothing that it signs lasts longer", ago(left),
			),
			"make another one and give every hub its certificate before: see certificate rotation in the runbook",
		)
	} else {
		p.judgeEnd(f, "the authority", authority.NotAfter, "hubs need certificates of another "+
			"authority, with --ca-cert and --ca-key, before: see certificate rotation in the runbook")
	}
	if info, err := os.Stat(key); err == nil && info.Mode().Perm()&0o077 != 0 {
		f.add(
			Wrong,
			fmt.Sprintf("the authority's key can be read by others (%s)", info.Mode().Perm()),
			"chmod 600 "+key,
		)
	}
	return authority
}

// checkBrokerCertificate connects as a hub would, as far as its certificate.
func checkBrokerCertificate(
	ctx context.Context, p *patient, authority *x509.Certificate, f *findings,
) {
	address, name := p.listener()
	if address == "" {
		return
	}
	shown, trusted, err := handshake(ctx, address)
	if err != nil {
		f.add(
			Unknown,
			fmt.Sprintf(
				"the broker's listener for hubs at %s does not get as far as its certificate: %v",
				address, err,
			),
			"see whether the service is ready: until it is, hubs wait",
		)
		return
	}
	p.judgeEnd(
		f,
		"the broker's certificate",
		shown[0].NotAfter,
		"a service renews its own a month before: start it again; that of a broker of one's own "+
			"is its operator's to replace",
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
	// What has ended is told already.
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); err != nil &&
		(!ok || invalid.Reason != x509.Expired) {
		f.add(
			Wrong, fmt.Sprintf("hubs refuse the broker's certificate for %q: %v", name, err),
			"it must be of the installation's authority and for the name in --public-mqtt, or in --public-url",
		)
	}
	if len(trusted) > 0 &&
		!slices.ContainsFunc(
			trusted,
			func(subject []byte) bool { return string(subject) == string(authority.RawSubject) },
		) {
		f.add(
			Wrong,
			"the broker's listener takes certificates of another authority than the one that hubs get theirs from",
			"name the same authority in the broker's MQTT listener (ca_file) and in --ca-cert",
		)
	}
}

// listener gives where the listener for hubs can be reached from here, and under which name hubs
// know it.
func (p *patient) listener() (address, name string) {
	address = p.Bound.MQTT
	public := ""
	if p.Started != nil {
		public = p.Started.PublicMQTT
	}
	if public != "" {
		if host, _, err := net.SplitHostPort(public); err == nil {
			name = host
		}
		if address == "" || p.Started.OwnBroker {
			address = public
		}
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", ""
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	if name == "" {
		name = host
	}
	return net.JoinHostPort(host, port), name
}

// handshake gives the certificates that a listener shows, and the subjects of those that it takes.
func handshake(
	ctx context.Context, address string,
) (shown []*x509.Certificate, trusted [][]byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	dialer := &tls.Dialer{Config: &tls.Config{
		InsecureSkipVerify: true, // it is looked at, not trusted
		GetClientCertificate: func(asked *tls.CertificateRequestInfo) (*tls.Certificate, error) {
			trusted = asked.AcceptableCAs
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
	if len(shown) > 0 { // that it then refuses who has no certificate is as it should be
		return shown, trusted, nil
	}
	if err == nil {
		err = errors.New("it shows none")
	}
	return nil, nil, err
}

// soon is how long a certificate must last at least.
func (p *patient) soon() time.Duration {
	return time.Duration(p.Limits.CertificateDays) * 24 * time.Hour
}

// judgeEnd compares the end of a certificate with the limit.
func (p *patient) judgeEnd(f *findings, what string, end time.Time, advice string) {
	left := time.Until(end)
	on := end.UTC().Format(time.DateOnly)
	switch {
	case left <= 0:
		f.add(Wrong, fmt.Sprintf("%s ended on %s", what, on), advice)
	case left < p.soon():
		f.add(Wrong, fmt.Sprintf("%s ends in %s, on %s", what, ago(left), on), advice)
	default:
		f.note("%s lasts until %s", what, on)
	}
}

// readCertificates reads a file of certificates, of which there must be one at least.
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
		return nil, fmt.Errorf("%s has no certificate in it", file)
	}
	return all, nil
}
