package jsapi

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Prefix begins the subjects of the JetStream API in an account of its own.
const Prefix = "$JS.API"

// API is the JetStream API of one account, as a connection reaches it. Safe for concurrent use.
type API struct {
	nc     *nats.Conn
	prefix string
	retry  Retry
}

// New returns the API of the account that nc is connected to.
func New(nc *nats.Conn) API { return API{nc: nc, prefix: Prefix} }

// WithPrefix returns a copy that reaches the API of another account, which is imported under that
// prefix, such as streams.ShardAPI.
func (a API) WithPrefix(prefix string) API {
	a.prefix = prefix
	return a
}

// WithRetry returns a copy that repeats its requests by another policy.
func (a API) WithRetry(r Retry) API {
	a.retry = r
	return a
}

// Conn returns the connection.
func (a API) Conn() *nats.Conn { return a.nc }

// response is embedded in the API's answers.
type response struct {
	Error *jetstream.APIError `json:"error"`
}

// failure returns the error that the broker answered, if any.
func (r *response) failure() error { return apiError(r.Error) }

// request sends a request by the API's retry policy and decodes the answer into a T, which check
// may reject; nil checks nothing. question is encoded as JSON; nil sends nothing.
func request[T any, P interface {
	*T
	failure() error
}](ctx context.Context, a API, subject string, question any, check func(P) error) (P, error) {
	var body []byte
	if question != nil {
		var err error
		if body, err = json.Marshal(question); err != nil {
			return nil, err
		}
	}
	var answer P
	err := a.retry.Do(ctx, func(ctx context.Context) error {
		msg, err := a.nc.RequestWithContext(ctx, a.prefix+"."+subject, body)
		if err != nil {
			return fmt.Errorf("ask the broker (%s): %w", subject, err)
		}
		answer = new(T)
		if err := decode(msg.Data, answer); err != nil || check == nil {
			return err
		}
		return check(answer)
	})
	if err != nil {
		return nil, err
	}
	return answer, nil
}

// decode decodes an answer of the API, and returns the error that the broker answered, if any.
func decode(text []byte, answer interface{ failure() error }) error {
	if err := json.Unmarshal(text, answer); err != nil {
		return fmt.Errorf("unreadable answer of the broker: %w", err)
	}
	return answer.failure()
}
