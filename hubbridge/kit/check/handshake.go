package check

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"reflect"
	"syscall"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"
)

// serverTLS returns the TLS configuration of the next connection, and whether it shows the
// certificate of the stranger.
func (c *Check) serverTLS() (config *tls.Config, stranger bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	config = c.authority.ServerTLS()
	if c.showStranger {
		config.GetCertificate = c.stranger.ServerTLS().GetCertificate
	}
	return config, c.showStranger
}

// The texts for handshakes that fail.
const (
	textNotTrusted = "the hub ended the TLS handshake: it does not trust this certificate"
	textNotOurs    = "the hub's certificate is of another authority"
	whatToDo       = ". It has the ca and certificate of another check or service, or connects to " +
		"another name than %s: let it enrol again (reset it, or wait until it does so by itself, " +
		"R-enrol-7), and use --state, which keeps the authority from check to check"
)

// handshakeFailed notes a failed TLS handshake. stranger is whether it had to fail.
func (c *Check) handshakeFailed(err error, stranger bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if stranger {
		c.distrusted++
		c.notify()
		return
	}
	text, unverified := "", new(tls.CertificateVerificationError)
	switch {
	case isCertificateAlert(err), isPlainAlert(err), isClosed(err):
		text = textNotTrusted
	case errors.As(err, &unverified):
		text = textNotOurs
	default:
		c.hint("connects", "the last TLS handshake failed: %v", err)
		return
	}
	text += fmt.Sprintf(whatToDo, c.cfg.Host)
	c.hint("connects", "%s", text)
	c.note(text)
}

// isClosed reports whether err is the end of a connection without a reason.
func isClosed(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)
}

// isCertificateAlert reports whether err is a TLS alert of the peer about our certificate: 42 to 46
// and 48 in RFC 8446, section 6.2.
func isCertificateAlert(err error) bool {
	alert, ok := alertOf(err, "remote error")
	return ok && (alert >= 42 && alert <= 46 || alert == 48)
}

// isPlainAlert reports whether err is our alert bad_record_mac, 20. With TLS 1.3 OpenSSL tells that
// it does not trust a certificate without encryption, and crypto/tls cannot decrypt that.
func isPlainAlert(err error) bool {
	alert, ok := alertOf(err, "local error")
	return ok && alert == 20
}

// alertOf returns the number of the TLS alert that err is, if its sender is op. The type of alerts
// is not exported.
func alertOf(err error, op string) (alert uint64, ok bool) {
	failed := new(net.OpError)
	if !errors.As(err, &failed) || failed.Op != op {
		return 0, false
	}
	value := reflect.ValueOf(failed.Err)
	if value.Kind() != reflect.Uint8 {
		return 0, false
	}
	return value.Uint(), true
}

// judgeStranger judges a connection that has passed the handshake: one to the stranger, on which
// a hub must send nothing, or one that the hub has closed without a CONNECT.
func (c *Check) judgeStranger(first packets.ControlPacket, err error, stranger bool) {
	if !stranger {
		c.handshakeFailed(err, false)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := first.(*packets.ConnectPacket); ok {
		c.deceived = true
		c.fail(
			"verifies-broker", nil,
			"sent CONNECT to a broker whose certificate is not of the authority in ca",
		)
	} else {
		c.distrusted++
	}
	c.notify()
}

// judgeEarlierCertificate rejects the first connection with the certificate of an earlier check: a
// hub that has been restarted then enrols at once. Another one comes again with the certificate,
// which is accepted.
func (c *Check) judgeEarlierCertificate() bool {
	const restart = "the hub has the certificate of an earlier check; restart it after this check " +
		"has begun, and it enrols again"
	c.pass("enrols")
	for _, id := range []string{"renews-certificate", "current-certificate"} {
		if r := c.results[id]; r != nil {
			r.Optional = true
			c.hint(id, restart)
		}
	}
	c.earlier++
	return c.earlier > 1
}

const (
	// strangerTries is after how many failed handshakes a hub that does not enrol is given up: more
	// than the three of R-enrol-7.
	strangerTries = 5
	// strangerLimit is how long they may take, with waits of up to three quarters of a minute.
	strangerLimit = 3 * time.Minute
	// stableAge is how long a connection lasts before: hubs connect again sooner after a connection
	// that has lasted.
	stableAge = 12 * time.Second
)

// checkStranger shows the hub the certificate of an authority that it does not trust, as after the
// loss of the service's authority, until the hub enrols again.
func (s *script) checkStranger() {
	s.awaitSilence()
	if _, count := s.inventory.current(); count == 1 && !s.reconnect("survives-cut", false) {
		return // the hub is to renew its first certificate before, which ends soon
	}
	s.await(s.ctx, stableAge, func() bool {
		return s.conn == nil || time.Since(s.conn.opened) >= stableAge
	})
	_, before := s.inventory.current()
	enrolled := func() bool {
		_, count := s.inventory.current()
		return count > before
	}
	number := s.connections
	s.showStranger, s.distrusted = true, 0
	s.end()
	s.await(s.ctx, strangerLimit, func() bool {
		return s.deceived || enrolled() || s.distrusted >= strangerTries
	})
	s.showStranger = false
	tries := s.distrusted
	switch {
	case s.deceived:
		s.hint("recovers-ca", "the hub trusts every broker")
	case tries == 0:
		s.hint("verifies-broker", "the hub did not connect within %v", strangerLimit)
	default:
		s.pass("verifies-broker")
	}
	back := s.await(s.ctx, reconnectLimit, func() bool {
		return s.conn != nil && s.conn.number > number && s.conn.acked
	})
	s.gone = !back
	switch {
	case s.deceived:
	case !enrolled() && s.earlier > 1:
		s.hint("recovers-ca", "the hub may have done so in an earlier check within the hour: "+
			"restart it after this check has begun")
	case !enrolled():
		s.fail(
			"recovers-ca", nil,
			"after %d TLS handshakes in which the broker's certificate was not of the authority in "+
				"ca, the hub had not enrolled again", tries,
		)
	case !back:
		s.fail("recovers-ca", nil, "the hub enrolled again, but did not connect within %v of that",
			reconnectLimit)
	default:
		s.pass("recovers-ca")
	}
}
