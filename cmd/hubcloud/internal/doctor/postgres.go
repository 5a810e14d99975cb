package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// errNoDatabase says that nobody has said where the database is.
var errNoDatabase = errors.New("it is not known where the database is")

// databaseFacts is what the database says of itself.
type databaseFacts struct {
	version, encoding, name      string
	bytes                        int64
	used, most                   int
	standby, readOnly, mayCreate bool
	now, asked, heard            time.Time
}

const databaseQuestion = `
SELECT current_setting('server_version'), current_setting('server_encoding'), current_database(), pg_database_size(current_database()),
    (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
    current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int,
    pg_is_in_recovery(), current_setting('transaction_read_only')::bool, has_database_privilege(current_database(), 'CREATE'), clock_timestamp()`

// askDatabase connects and asks.
func askDatabase(ctx context.Context, url string) (facts databaseFacts, err error) {
	if url == "" {
		return facts, errNoDatabase
	}
	config, err := pgx.ParseConfig(url)
	if err != nil {
		// the cause may have the password in it
		return facts, errors.New("its address is not like postgres://USER:PASSWORD@HOST/DATABASE")
	}
	config.RuntimeParams["application_name"] = "hubcloud doctor"
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return facts, err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(closing) // everything is known by then
	}()
	facts.asked = time.Now()
	err = conn.QueryRow(ctx, databaseQuestion).
		Scan(&facts.version, &facts.encoding, &facts.name, &facts.bytes, &facts.used, &facts.most,
			&facts.standby, &facts.readOnly, &facts.mayCreate, &facts.now)
	facts.heard = time.Now()
	return facts, err
}

// checkPostgres says whether the database can be reached, can hold every text, can be written to
// and has connections left.
func checkPostgres(_ context.Context, p *patient, f *findings) {
	facts, err := p.database()
	if err != nil {
		databaseAway(p, f, err)
		return
	}
	f.note("PostgreSQL %s, database %s of %s", facts.version, facts.name, size(facts.bytes))
	if facts.encoding != "UTF8" {
		f.add(
			Wrong, fmt.Sprintf("its encoding is %s", facts.encoding),
			"make a database with ENCODING 'UTF8' and name it with --postgres-url; it is filled by itself",
		)
	}
	switch {
	case facts.standby:
		f.add(
			Wrong, "it is a standby and cannot be written to",
			"name the primary with --postgres-url (target_session_attrs=read-write finds it)",
		)
	case facts.readOnly:
		f.add(
			Wrong, "it takes no writes: its transactions are read-only",
			"find out who set default_transaction_read_only, and reset it",
		)
	}
	if !facts.mayCreate {
		f.add(
			Wrong, "the user may not create schemas in it",
			fmt.Sprintf("GRANT CREATE ON DATABASE %s TO the user of --postgres-url", facts.name),
		)
	}
	left := facts.most - facts.used
	found := fmt.Sprintf("%d of %d connections are left", left, facts.most)
	if left < p.Limits.Connections {
		f.add(
			Wrong,
			found,
			"raise max_connections, or find out who holds so many: SELECT application_name, "+
				"count(*) FROM pg_stat_activity GROUP BY 1",
		)
	} else {
		f.note("%s", found)
	}
}

// databaseAway says why the database cannot be reached, as far as that can be told.
func databaseAway(p *patient, f *findings, err error) {
	private := p.Started != nil && !p.Started.OwnDatabase
	switch {
	case errors.Is(err, errNoDatabase) && p.DataDir == "":
		f.add(Skipped, err.Error(), "name it with --postgres-url to have it looked at, too")
	case errors.Is(err, fs.ErrPermission):
		f.add(
			Unknown, err.Error(),
			"ask as the user whom the service runs as: the database's address may have a password in it",
		)
	case errors.Is(err, errNoDatabase):
		f.add(
			Unknown, err.Error(),
			"name it with --postgres-url; a service that has run writes it into postgres.json in its data directory",
		)
	case private && !p.running():
		f.add(Unknown, "the private database runs only while the service does", "start the service")
	case private:
		f.add(
			Wrong,
			fmt.Sprintf("the private database does not answer: %v", withoutLogin(err)),
			"see the service's log, and that of the database in the data directory under "+
				"postgres/; losing it loses nothing, it is built anew",
		)
	default:
		f.add(
			Wrong,
			fmt.Sprintf("cannot be reached: %v", withoutLogin(err)),
			"see whether it runs, whether a firewall is in between, and whether user and "+
				"password of --postgres-url are right",
		)
	}
}

var passwords = regexp.MustCompile(`://[^@/\s]*@`)

// withoutLogin leaves out what may be a password; pgx itself masks it in what it says.
func withoutLogin(err error) error {
	var refused *pgconn.PgError
	if errors.As(err, &refused) {
		return fmt.Errorf("%s (SQLSTATE %s)", refused.Message, refused.Code)
	}
	return errors.New(passwords.ReplaceAllString(err.Error(), "://…@"))
}
