package brokerconn

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"
)

const (
	// ConnectTimeout bounds each stage of a connect.
	ConnectTimeout = 15 * time.Second
	// WriteTimeout bounds one write to the broker.
	WriteTimeout = 5 * time.Second
)

// Stage is the part of a connect that failed.
type Stage int

// The stages of a connect, in order.
const (
	StageDial Stage = iota // TCP: no broker answers
	StageTLS               // the handshake, in which each side verifies the other's certificate
	StageMQTT              // CONNECT and the subscriptions
)

// Error is the error of a connect.
type Error struct {
	Stage Stage
	Err   error
}

func (e *Error) Error() string { return fmt.Sprintf("connect: %v", e.Err) }

func (e *Error) Unwrap() error { return e.Err }

// NeedsCertificate reports whether a new certificate is likely to help: the broker rejected the
// hub's certificate. It is false for a connection that was merely closed, which has many other
// causes.
func (e *Error) NeedsCertificate() bool {
	var remote *net.OpError
	return errors.Is(e.Err, packets.ErrorRefusedNotAuthorised) ||
		errors.Is(e.Err, packets.ErrorRefusedBadUsernameOrPassword) ||
		errors.As(e.Err, &remote) && remote.Op == "remote error" // a TLS alert
}

// Untrusted reports whether the hub did not trust the broker's certificate.
func (e *Error) Untrusted() bool {
	var verification *tls.CertificateVerificationError
	return errors.As(e.Err, &verification)
}

// DialFunc opens a TCP connection, like the DialContext of a net.Dialer.
type DialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// Dial opens a TCP connection to the broker at address (HOST:PORT) with dial, and TLS over it. It
// sets the server name in cfg. Its errors are *Error with StageDial or StageTLS.
func Dial(
	ctx context.Context, dial DialFunc, address string, cfg *tls.Config,
) (*tls.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, ConnectTimeout)
	defer cancel()
	raw, err := dial(ctx, "tcp", address)
	if err != nil {
		return nil, &Error{StageDial, err}
	}
	if cfg.ServerName, _, err = net.SplitHostPort(address); err != nil {
		_ = raw.Close()
		return nil, &Error{StageDial, err}
	}
	conn := tls.Client(raw, cfg)
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, &Error{StageTLS, err}
	}
	return conn, nil
}
