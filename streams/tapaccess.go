package streams

import "fmt"

// AccountTap is the account in which `hubcloud tap` reads hub logs with the service's own
// credentials. It has no streams of its own. The feeds of all shards come into it under their own
// names, and of each shard's JetStream API what only reads, below ShardAPI.
const AccountTap Account = "TAP"

// MaxTaps is how many credentials of taps an installation can have. Each has an account of its own,
// TapAccount, which is like AccountTap.
//
// The server answers a request wherever the requester asks it to: no permission covers reply
// subjects. So a tap in the account of another could have the answer to a request delivered to the
// other's inbox, or as a message of a feed. An answer never leaves the requester's account, and
// within that one nothing is delivered on a feed's subject but what a shard has stored: see NoFeed.
const MaxTaps = 16

// TapAccount returns the account of credentials of a tap, by their number from 0 to MaxTaps - 1.
func TapAccount(i int) Account { return Account(fmt.Sprintf("TAP%02d", i)) }

// TapAccounts returns AccountTap and those of credentials.
func TapAccounts() []Account {
	accounts := []Account{AccountTap}
	for i := range MaxTaps {
		accounts = append(accounts, TapAccount(i))
	}
	return accounts
}

// NoFeed is where a message goes that was published on a feed's subject within an account of a tap,
// such as an answer that was asked for there: nobody may subscribe to it. Messages of shards come
// past that mapping.
const NoFeed = "no-feed.>"

// AnyFeed matches everything that is published again once it is stored, of every hub log.
const AnyFeed = "feed.>"

// ShardAPI is the JetStream API prefix under which the accounts of taps reach a shard: what
// elsewhere is $JS.API.STREAM.INFO.… is <ShardAPI>.STREAM.INFO.… there.
func ShardAPI(i int) string { return fmt.Sprintf("shard.%02d", i) }

// ReadOnly are the requests of the JetStream API that a tap may make, without their prefix, and
// whether one is answered by many messages. What is not among them cannot be asked for in the
// account of a tap, by whoever: there are no consumers, and nothing that writes.
func ReadOnly() []ReadOnlyRequest {
	return []ReadOnlyRequest{
		{Subject: "STREAM.NAMES"},
		{Subject: "STREAM.LIST"},
		{Subject: "STREAM.INFO.*"},
		{Subject: "STREAM.MSG.GET.*"},
		{Subject: "DIRECT.GET.*", Streamed: true},
		{Subject: "DIRECT.GET.*.>"},
	}
}

// ReadOnlyRequest is one of them.
type ReadOnlyRequest struct {
	Subject  string
	Streamed bool
}

// Permissions are what a user of the broker may publish and subscribe to; what is denied wins.
type Permissions struct {
	Publish, Deny, Subscribe []string
}

// TapInbox is the inbox prefix of a tap.
func TapInbox(user string) string { return "_INBOX." + user }

// TapPermissions are what a tap may do: subscribe to the feeds and to an inbox of its own, and ask
// what ReadOnly lists. The server's own streams of MQTT sessions lie in the same accounts as hub
// logs, and are denied by name.
func TapPermissions(user string) Permissions {
	p := Permissions{Subscribe: []string{AnyFeed, TapInbox(user) + ".>"}}
	for _, request := range ReadOnly() {
		p.Publish = append(p.Publish, "shard.*."+request.Subject)
	}
	for _, stream := range []string{
		"$MQTT_sess", "$MQTT_msgs", "$MQTT_rmsgs", "$MQTT_qos2in", "$MQTT_out",
	} {
		p.Deny = append(p.Deny, "shard.*.STREAM.INFO."+stream, "shard.*.STREAM.MSG.GET."+stream,
			"shard.*.DIRECT.GET."+stream, "shard.*.DIRECT.GET."+stream+".>")
	}
	return p
}
