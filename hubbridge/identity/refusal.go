package identity

import (
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/jwt/v2"
)

// reason is why a connection was refused, as logs and metrics name it.
type reason string

const (
	reasonNotMQTT       reason = "not_mqtt"
	reasonNoCertificate reason = "no_certificate"
	// reasonOtherName: the certificate's name, the MQTT client id and a hub id are not the same.
	reasonOtherName  reason = "other_name"
	reasonUnknownHub reason = "unknown_hub"
	reasonBlocked    reason = "blocked"
	// reasonTooOften: the hub has connected more often than HubConnections allows.
	reasonTooOften reason = "too_often"
	// reasonNotCurrent: the hub has another certificate now, or none.
	reasonNotCurrent  reason = "not_current_certificate"
	reasonNoDirectory reason = "directory_unavailable"
	// reasonUnknownTap: the user is no tap's, or the password is not the present one.
	reasonUnknownTap reason = "unknown_tap"
	reasonNoTaps     reason = "taps_unavailable"
	// reasonTooLate: the question waited longer than the broker does.
	reasonTooLate reason = "too_late"

	// resultAccepted stands beside the reasons in the metric.
	resultAccepted = "accepted"
)

// reasons gives every reason.
func reasons() []reason {
	return []reason{
		reasonNotMQTT, reasonNoCertificate, reasonOtherName, reasonUnknownHub, reasonBlocked,
		reasonTooOften, reasonNotCurrent, reasonNoDirectory, reasonUnknownTap, reasonNoTaps,
		reasonTooLate,
	}
}

// refusal is the error of a connection that is refused.
type refusal struct {
	reason reason
	cause  error
}

func refuse(r reason, cause error) *refusal { return &refusal{reason: r, cause: cause} }

// Error gives the reason, and the cause if there is one.
func (r *refusal) Error() string {
	if r.cause == nil {
		return string(r.reason)
	}
	return string(r.reason) + ": " + r.cause.Error()
}

// Unwrap gives the cause.
func (r *refusal) Unwrap() error { return r.cause }

const (
	// refusalEvery is how often the same refusal is logged: a hub that is locked out tries for
	// days.
	refusalEvery = time.Minute
	// refusalsKept bounds what is remembered for that. Names are only taken from hubs with a
	// certificate, but those may be many.
	refusalsKept = 4096
)

// refusalLog logs refusals, each kind of a client's once in a while.
type refusalLog struct {
	log *slog.Logger
	now func() time.Time

	mu   sync.Mutex
	last map[refusalKey]time.Time
}

type refusalKey struct {
	client string
	reason reason
}

func newRefusalLog(log *slog.Logger, now func() time.Time) *refusalLog {
	return &refusalLog{log: log, now: now, last: map[refusalKey]time.Time{}}
}

func (l *refusalLog) add(request *jwt.AuthorizationRequestClaims, r *refusal) {
	client, host := request.ClientInformation.MQTT, request.ClientInformation.Host
	if !l.due(refusalKey{client: client, reason: r.reason}) {
		return
	}
	attrs := []any{"client_id", client, "address", host, "reason", string(r.reason)}
	if client == "" {
		attrs[0], attrs[1] = "user", request.ConnectOptions.Username
	}
	if certificate, err := shownCertificate(request); err == nil {
		attrs = append(
			attrs, "certificate_name", certificate.Subject.CommonName,
			"fingerprint", fingerprint(certificate.Raw),
		)
	}
	if r.cause == nil {
		l.log.Info("connection refused", attrs...)
		return
	}
	// A cause is something that failed here, and no wrong of the client's.
	l.log.Warn("connection refused", append(attrs, "error", r.cause)...)
}

func (l *refusalLog) due(key refusalKey) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if last, ok := l.last[key]; ok && now.Sub(last) < refusalEvery {
		return false
	}
	if len(l.last) >= refusalsKept {
		clear(l.last) // some lines come twice then
	}
	l.last[key] = now
	return true
}
