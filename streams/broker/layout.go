package broker

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nkeys"
	"golang.org/x/crypto/bcrypt"

	"hubcloud/streams"
)

const (
	// passwordCost is the least that bcrypt takes. The passwords are 256 random bits: stretching
	// would only slow the service's own connections.
	passwordCost = bcrypt.MinCost
	// tapAnswer is how long a shard's answer to a tap may be on its way between two messages of it.
	// The server remembers that long where an answer goes, also after its end.
	tapAnswer = 5 * time.Second
)

// Layout is how the broker's accounts hang together: who may log in to which, what goes from one to
// the other, and who is asked about everybody else. It is the same for the embedded server and for
// servers of one's own; Text writes it as they read it.
type Layout struct {
	Accounts []Account
	// System is the account of the server's own events and requests.
	System streams.Account
	// Issuer is the public key that signs answers of the auth callout, which is asked in the
	// account Callout. CalloutUsers need no asking.
	Issuer       string
	Callout      streams.Account
	CalloutUsers []string
}

// Account is one account of the broker.
type Account struct {
	Name streams.Account
	// JetStream says that it keeps streams.
	JetStream bool
	Users     []AccountUser
	Exports   []Export
	Imports   []Import
	// Mappings has what is published in the account, or answered into it, go to another subject.
	// What the account imports is not published in it.
	Mappings map[string]string
}

// AccountUser is one who logs in with a password, over NATS or in process: no password opens the
// MQTT listener.
type AccountUser struct {
	Name string
	// PasswordHash is bcrypt's.
	PasswordHash string
	// Permissions are what the user may do; nil is everything that the account can.
	Permissions *streams.Permissions
}

// Export gives a subject to other accounts: messages to hear or, for a Service, to send and have
// answered.
type Export struct {
	Service bool
	Subject string
	To      []streams.Account
	// Streamed says that a request has many messages for an answer, of which none comes later than
	// Threshold after the one before.
	Streamed  bool
	Threshold time.Duration
}

// Import takes what another account exports, under the name As or, when that is empty, under its
// own.
type Import struct {
	Service bool
	From    streams.Account
	Subject string
	As      string
}

// NewLayout makes the layout of an installation. Credentials without a user for the account TAP
// give one that only the auth callout lets in to.
func NewLayout(c streams.Credentials) (Layout, error) {
	issuer, err := issuerKey(c)
	if err != nil {
		return Layout{}, err
	}
	l := Layout{System: streams.AccountSys, Issuer: issuer, Callout: streams.AccountCloud}
	l.Accounts = []Account{
		{Name: streams.AccountSys},
		{Name: streams.AccountCloud, JetStream: true},
	}
	for _, name := range streams.TapAccounts() {
		account := Account{Name: name, Mappings: map[string]string{streams.AnyFeed: streams.NoFeed}}
		for i := range c.Shards {
			account.Imports = append(account.Imports, tapImports(i)...)
		}
		l.Accounts = append(l.Accounts, account)
	}
	for i := range c.Shards {
		l.Accounts = append(
			l.Accounts,
			Account{Name: streams.ShardAccount(i), JetStream: true, Exports: tapExports()},
		)
	}
	for i := range l.Accounts {
		if err := l.addUser(&l.Accounts[i], c.Users); err != nil {
			return Layout{}, err
		}
	}
	return l, nil
}

// tapExports are what a shard gives to the accounts of taps.
func tapExports() []Export {
	exports := []Export{{Subject: streams.AnyFeed, To: streams.TapAccounts()}}
	for _, request := range streams.ReadOnly() {
		export := Export{
			Service: true,
			Subject: streams.JetStreamAPI + "." + request.Subject,
			To:      streams.TapAccounts(),
		}
		if request.Streamed {
			export.Streamed, export.Threshold = true, tapAnswer
		}
		exports = append(exports, export)
	}
	return exports
}

// tapImports are what an account of a tap takes of a shard.
func tapImports(shard int) []Import {
	account := streams.ShardAccount(shard)
	imports := []Import{{From: account, Subject: streams.AnyFeed}}
	for _, request := range streams.ReadOnly() {
		imports = append(imports, Import{
			Service: true, From: account, Subject: streams.JetStreamAPI + "." + request.Subject,
			As: streams.ShardAPI(shard) + "." + request.Subject,
		})
	}
	return imports
}

func (l *Layout) addUser(account *Account, users map[streams.Account]streams.User) error {
	user, ok := users[account.Name]
	if !ok && slices.Contains(streams.TapAccounts(), account.Name) {
		return nil
	}
	hash, err := bcrypt.GenerateFromPassword([]byte(user.Password), passwordCost)
	if err != nil {
		return fmt.Errorf("the password of the account %s: %w", account.Name, err)
	}
	added := AccountUser{Name: user.User, PasswordHash: string(hash)}
	if account.Name == streams.AccountTap {
		permissions := streams.TapPermissions(user.User)
		added.Permissions = &permissions
	}
	account.Users = append(account.Users, added)
	l.CalloutUsers = append(l.CalloutUsers, user.User)
	return nil
}

// Text is the layout as a NATS server's configuration has it: the blocks accounts and
// authorization, and the setting system_account.
func (l Layout) Text() string {
	var text strings.Builder
	text.WriteString("accounts {\n")
	for _, account := range l.Accounts {
		account.write(&text)
	}
	fmt.Fprintf(&text, "}\nsystem_account: %s\n", l.System)
	fmt.Fprintf(
		&text,
		"authorization {\n  timeout: %d\n  auth_callout { issuer: %s, account: %s, auth_users: %s }\n}\n",
		calloutTimeoutSeconds, l.Issuer, l.Callout, quoted(l.CalloutUsers),
	)
	return text.String()
}

func (a Account) write(text *strings.Builder) {
	fmt.Fprintf(text, "  %s {\n", a.Name)
	if a.JetStream {
		text.WriteString("    jetstream: enabled\n")
	}
	if len(a.Users) > 0 {
		text.WriteString("    users: [\n")
		for _, user := range a.Users {
			user.write(text)
		}
		text.WriteString("    ]\n")
	}
	if len(a.Exports) > 0 {
		text.WriteString("    exports: [\n")
		for _, export := range a.Exports {
			export.write(text)
		}
		text.WriteString("    ]\n")
	}
	if len(a.Imports) > 0 {
		text.WriteString("    imports: [\n")
		for _, imported := range a.Imports {
			imported.write(text)
		}
		text.WriteString("    ]\n")
	}
	for _, from := range slices.Sorted(maps.Keys(a.Mappings)) {
		fmt.Fprintf(text, "    mappings: { %q: %q }\n", from, a.Mappings[from])
	}
	text.WriteString("  }\n")
}

func (u AccountUser) write(text *strings.Builder) {
	fmt.Fprintf(
		text, "      { user: %q, password: %q, allowed_connection_types: [STANDARD, IN_PROCESS]",
		u.Name, u.PasswordHash,
	)
	if p := u.Permissions; p != nil {
		fmt.Fprintf(
			text,
			",\n        permissions: {\n          publish: { allow: %s,\n            deny: %s "+
				"}\n          subscribe: { allow: %s }\n        }",
			quoted(p.Publish),
			quoted(p.Deny),
			quoted(p.Subscribe),
		)
	}
	text.WriteString(" }\n")
}

func (e Export) write(text *strings.Builder) {
	to := make([]string, len(e.To))
	for i, account := range e.To {
		to[i] = string(account)
	}
	fmt.Fprintf(
		text, "      { %s: %q, accounts: [%s]", kind(e.Service), e.Subject, strings.Join(to, ", "),
	)
	if e.Streamed {
		fmt.Fprintf(text, ", response: stream, threshold: %q", e.Threshold)
	}
	text.WriteString(" }\n")
}

func (i Import) write(text *strings.Builder) {
	fmt.Fprintf(
		text, "      { %s: { account: %s, subject: %q }", kind(i.Service), i.From, i.Subject,
	)
	if i.As != "" {
		fmt.Fprintf(text, ", to: %q", i.As)
	}
	text.WriteString(" }\n")
}

func kind(service bool) string {
	if service {
		return "service"
	}
	return "stream"
}

func quoted(all []string) string {
	texts := make([]string, len(all))
	for i, s := range all {
		texts[i] = fmt.Sprintf("%q", s)
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

// issuerKey gives the public half of the key that signs the answers of the auth callout.
func issuerKey(c streams.Credentials) (string, error) {
	pair, err := nkeys.FromSeed([]byte(c.IssuerSeed))
	if err != nil {
		return "", fmt.Errorf("the credentials' issuer_seed: %w", err)
	}
	defer pair.Wipe()
	return pair.PublicKey()
}
