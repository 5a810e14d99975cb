package broker

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nkeys"
	"golang.org/x/crypto/bcrypt"

	"hubcloud/streams"
	"hubcloud/streams/jsapi"
)

const (
	// passwordCost is bcrypt's lowest cost. The passwords are 256 random bits, so a higher cost
	// would only slow down the service's connections.
	passwordCost = bcrypt.MinCost
	// tapResponseThreshold is the longest pause between two messages of a shard's response to a
	// tap. The server remembers the destination of a response that long, also after its end.
	tapResponseThreshold = 5 * time.Second
)

// Layout describes the broker's accounts: their users, what they share, and the auth callout that
// decides about all other clients. It is the same for the embedded and for an external server. Text
// returns it in the syntax of the server's configuration.
type Layout struct {
	Accounts []Account
	// System is the account for the server's own events and requests.
	System streams.Account
	// Issuer is the public key that signs the responses of the auth callout.
	Issuer string
	// Callout is the account in which the auth callout is requested. Empty means none: only the
	// users of Accounts can log in.
	Callout streams.Account
	// CalloutUsers are the users that log in without the auth callout.
	CalloutUsers []string
}

// Account is an account of the broker.
type Account struct {
	Name streams.Account
	// JetStream enables streams in the account.
	JetStream bool
	Users     []AccountUser
	Exports   []Export
	Imports   []Import
	// Mappings redirects messages published in the account, including responses, from one subject
	// to another. They do not apply to imported messages.
	Mappings map[string]string
}

// AccountUser is a user who logs in with a password, over NATS or within the process. The MQTT
// listener accepts no passwords.
type AccountUser struct {
	Name string
	// PasswordHash is a bcrypt hash.
	PasswordHash string
	// Permissions restrict the user; nil means no restriction.
	Permissions *streams.Permissions
}

// Export makes a subject of an account available to other accounts: as a stream of messages or, for
// a Service, for requests.
type Export struct {
	Service bool
	Subject string
	To      []streams.Account
	// Threshold is the longest pause between two messages of a response, 0 if it has only one.
	Threshold time.Duration
}

// Import makes an exported subject of another account available in an account, under the subject As
// or, if that is empty, under the same subject.
type Import struct {
	Service bool
	From    streams.Account
	Subject string
	As      string
}

// NewLayout returns the layout of an installation. If the credentials have no user of the account
// TAP, only the auth callout admits users to it.
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

// tapExports returns the exports of a shard to the accounts of taps.
func tapExports() []Export {
	exports := []Export{
		{Subject: streams.AnyFeed, To: streams.TapAccounts()},
		{Service: true, Subject: streams.CompleteViews, To: streams.TapAccounts()},
	}
	for _, request := range streams.ReadOnly() {
		export := Export{
			Service: true,
			Subject: jsapi.Prefix + "." + request.Subject,
			To:      streams.TapAccounts(),
		}
		if request.Streamed {
			export.Threshold = tapResponseThreshold
		}
		exports = append(exports, export)
	}
	return exports
}

// tapImports returns the imports of a tap's account from a shard.
func tapImports(shard int) []Import {
	account := streams.ShardAccount(shard)
	imports := []Import{
		{From: account, Subject: streams.AnyFeed},
		{
			Service: true, From: account, Subject: streams.CompleteViews,
			As: streams.CompleteViewsOf(shard),
		},
	}
	for _, request := range streams.ReadOnly() {
		imports = append(imports, Import{
			Service: true, From: account, Subject: jsapi.Prefix + "." + request.Subject,
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
		return fmt.Errorf("hash the password of account %s: %w", account.Name, err)
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

// split returns the layouts of the embedded broker's two servers. The durable server has the
// streams of the account CLOUD, and no other accounts but this one and SYS. The server for hubs has
// everything else, and the account CLOUD for requests of the auth callout.
func (l Layout) split() (hubs, durable Layout) {
	hubs, durable = l, Layout{System: l.System}
	hubs.Accounts = slices.Clone(l.Accounts)
	for i, account := range l.Accounts {
		if account.Name == l.System || account.Name == streams.AccountCloud {
			durable.Accounts = append(durable.Accounts, account)
		}
		if account.Name == streams.AccountCloud {
			hubs.Accounts[i].JetStream = false
		}
	}
	return hubs, durable
}

// Text returns the layout in the syntax of a NATS server's configuration: the blocks accounts and
// authorization, and the setting system_account.
func (l Layout) Text() string { return execute("accounts", l) }

func quoted(all []string) string {
	texts := make([]string, len(all))
	for i, s := range all {
		texts[i] = fmt.Sprintf("%q", s)
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

// issuerKey returns the public key that signs the responses of the auth callout.
func issuerKey(c streams.Credentials) (string, error) {
	pair, err := nkeys.FromSeed([]byte(c.IssuerSeed))
	if err != nil {
		return "", fmt.Errorf("credentials: issuer_seed: %w", err)
	}
	defer pair.Wipe()
	return pair.PublicKey()
}
