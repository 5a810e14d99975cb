// Package protocol validates messages between hubs and the cloud against the JSON Schemas of the
// hub protocol, and against the rules that a schema cannot express.
package protocol

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"hubcloud/hubbridge/protocol"
)

// Schemas are the compiled schemas, by name without extension. Formats are asserted.
type Schemas map[string]*jsonschema.Schema

// Load compiles the schemas of the protocol, once per process.
var Load = sync.OnceValues(load)

func load() (Schemas, error) {
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	names, err := fs.Glob(protocol.Files(), "schemas/*.json")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := fs.ReadFile(protocol.Files(), name)
		if err != nil {
			return nil, err
		}
		document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err == nil {
			err = compiler.AddResource("link:///"+name, document)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	schemas := Schemas{}
	for _, name := range names {
		schema, err := compiler.Compile("link:///" + name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		schemas[strings.TrimSuffix(path.Base(name), ".json")] = schema
	}
	return schemas, nil
}

// Validate returns an error unless text is JSON that the named schema allows.
func (s Schemas) Validate(name string, text []byte) error {
	schema := s[name]
	if schema == nil {
		return fmt.Errorf("no schema %s", name)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err == nil {
		err = schema.Validate(value)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// Checker validates the messages of one hub. It is safe for concurrent use.
type Checker struct {
	schemas Schemas

	mu sync.Mutex
	// methods are the methods of the requests, by the topic of the response.
	methods map[string]string
}

// NewChecker returns a Checker of a hub.
func NewChecker() (*Checker, error) {
	schemas, err := Load()
	return &Checker{schemas: schemas, methods: map[string]string{}}, err
}

// Check validates a message of a topic, in either direction. Its error shows the message.
func (c *Checker) Check(topic string, payload []byte) error {
	if err := c.check(topic, payload); err != nil {
		const shown = 2000
		return fmt.Errorf(
			"message on %s violates the protocol: %w\n%s", topic, err,
			payload[:min(len(payload), shown)],
		)
	}
	return nil
}

// CheckEnrolment validates the answer to a certificate request.
func CheckEnrolment(status int, body []byte) error {
	schemas, err := Load()
	if err != nil {
		return err
	}
	if status == http.StatusCreated {
		return schemas.Validate("enrolment-answer", body)
	}
	return schemas.Validate("enrolment-error", body)
}

func (c *Checker) check(topic string, payload []byte) error {
	levels := strings.SplitN(topic, "/", 4)
	if len(levels) < 3 || levels[0] != "hub" {
		return fmt.Errorf("no topic of the protocol")
	}
	switch kind := levels[2]; {
	case len(levels) == 3 && kind == "hello":
		return c.checkHello(payload)
	case len(levels) == 3 && kind == "ack":
		return c.schemas.Validate("ack", payload)
	case len(levels) == 3 && kind == "events":
		return c.checkEvents(payload)
	case len(levels) == 3 && kind == "request":
		return c.checkRequest(levels[1], payload)
	case len(levels) == 4 && kind == "response":
		c.mu.Lock()
		method, ok := c.methods[topic]
		c.mu.Unlock()
		if !ok {
			return fmt.Errorf("no request had this token")
		}
		return c.schemas.Validate("response-"+method, payload)
	}
	return fmt.Errorf("no topic of the protocol")
}

func (c *Checker) checkHello(payload []byte) error {
	if err := c.schemas.Validate("hello", payload); err != nil {
		return err
	}
	var hello protocol.Hello
	if err := json.Unmarshal(payload, &hello); err != nil {
		return err
	}
	if hello.Oldest > hello.Newest+1 {
		return fmt.Errorf("oldest is %d and newest %d", hello.Oldest, hello.Newest)
	}
	return nil
}

func (c *Checker) checkEvents(payload []byte) error {
	if err := c.schemas.Validate("events", payload); err != nil {
		return err
	}
	if len(payload) > protocol.MaxMessageBytes {
		return fmt.Errorf("%d bytes", len(payload))
	}
	var message struct {
		Events []json.RawMessage `json:"events"`
	}
	if err := json.Unmarshal(payload, &message); err != nil {
		return err
	}
	var before uint64
	for i, text := range message.Events {
		var event protocol.Event
		if err := json.Unmarshal(text, &event); err != nil {
			return err
		}
		if i > 0 && event.Seq != before+1 {
			return fmt.Errorf("number %d follows %d", event.Seq, before)
		}
		before = event.Seq
		if len(text) > protocol.MaxEventBytes {
			return fmt.Errorf("event %d: %d bytes", event.Seq, len(text))
		}
		if name := "event-" + event.Type; c.schemas[name] != nil {
			if err := c.schemas.Validate(name, text); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *Checker) checkRequest(hub string, payload []byte) error {
	var request protocol.Request
	if err := json.Unmarshal(payload, &request); err != nil {
		return err
	}
	c.mu.Lock()
	c.methods["hub/"+hub+"/response/"+request.Token] = request.Method
	c.mu.Unlock()
	return c.schemas.Validate("request-"+request.Method, payload)
}
