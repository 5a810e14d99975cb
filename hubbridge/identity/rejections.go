package identity

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/netip"
	"time"

	"github.com/nats-io/jwt/v2"

	"hubcloud/streams/shares"
)

const (
	// rejectedPerMinute and rejectedBurst bound the rejected connections of a client that are looked
	// into. Further ones are rejected at once, until it pauses.
	rejectedPerMinute, rejectedBurst = 10, 20
	// addressPerSecond and addressBurst bound the rejected connections of all clients at an address.
	// While it has more, its handshakes wait, 5 s at most, which is less than hubs wait for a
	// connection: a hub that is well may be at the same address.
	addressPerSecond, addressBurst = 20, 100
)

// errRejectedBefore ends the handshake of a certificate that was rejected too often.
var errRejectedBefore = errors.New("the certificate has been rejected too often")

// Rejections know which clients of the broker were rejected lately, so that one that goes on with a
// replaced certificate, or with wrong passwords, costs others little. Only rejections count: however
// often a client connects that is admitted, it neither waits nor makes others wait.
type Rejections struct {
	now func() time.Time
	// clients are the clients, by certificate or else by address and user; addresses are all clients
	// at an address.
	clients   *shares.Rate[string]
	addresses *shares.Rate[netip.Prefix]
}

// NewRejections returns Rejections without any; a nil registry reports nothing, and a nil clock is
// time.Now.
func NewRejections(registry *shares.Registry, now func() time.Time) *Rejections {
	if now == nil {
		now = time.Now
	}
	return &Rejections{
		now: now,
		clients: shares.NewRate[string](registry, shares.RateConfig{
			Name: "rejected_logins", PerSecond: rejectedPerMinute / 60.0, Burst: rejectedBurst,
		}, now()),
		addresses: shares.NewRate[netip.Prefix](registry, shares.RateConfig{
			Name: "rejected_logins_of_addresses", PerSecond: addressPerSecond, Burst: addressBurst,
		}, now()),
	}
}

// Pause returns how long a handshake must wait because too many clients at its address were rejected.
func (r *Rejections) Pause(peer netip.Addr) time.Duration {
	return r.addresses.Next(shares.AddressBlock(peer), r.now())
}

// Guard returns the TLS configuration of a listener for hubs that ends the handshakes of
// certificates that were rejected too often: before the auth callout, which costs most.
func (r *Rejections) Guard(base *tls.Config) *tls.Config {
	guarded := base.Clone()
	guarded.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		peer, _ := netip.ParseAddrPort(hello.Conn.RemoteAddr().String()) // TCP has one
		at := shares.AddressBlock(peer.Addr())
		own := base.Clone()
		own.VerifyConnection = func(state tls.ConnectionState) error {
			if r.clients.Next(fingerprint(state.PeerCertificates[0].Raw), r.now()) == 0 {
				return nil
			}
			r.addresses.Spend(at, 1, r.now())
			return errRejectedBefore
		}
		return own, nil
	}
	return guarded
}

// tooMany reports whether the client was rejected too often to be looked into.
func (r *Rejections) tooMany(client string) bool { return r.clients.Next(client, r.now()) > 0 }

// add counts a rejection, and reports whether too many clients at its address were rejected.
func (r *Rejections) add(client, address string) (tooMany bool) {
	r.clients.Take(client, r.now())
	peer, _ := netip.ParseAddr(address)
	return r.addresses.Spend(shares.AddressBlock(peer), 1, r.now()) > 0
}

// clientOf returns the name of a client among the Rejections: a hub with a new certificate is
// another client.
func clientOf(request *jwt.AuthorizationRequestClaims, certificate *x509.Certificate) string {
	if certificate != nil {
		return fingerprint(certificate.Raw)
	}
	return request.ClientInformation.Host + " " + request.ConnectOptions.Username
}
