"""The SQL functions that only compute, as data: one list for the parser's gate and for the engine's own guard.

Standard library only and importing nothing, so that the same file is sent into a cage with the query tool. A name
that is not here is refused by both layers, so the lists are allowlists: they grow when a function is shown to read no
file, no setting, no other session, and to write nothing, whatever its arguments.

Left out on purpose: `load_extension`, `readfile`, `writefile`, `edit`, `fts3_tokenizer`, every `sqlite_*` (code,
files, internals); `randomblob` and `zeroblob` (their only use in a question is to allocate); `changes`,
`total_changes`, `last_insert_rowid` (nothing writes here); `optimize` of FTS3 (it writes); `regexp`, which SQLite
does not have. In PostgreSQL: everything that runs a query given as text (`query_to_xml`, `ts_stat`, `ts_rewrite`,
`crosstab`), touches files, large objects, sequences, settings (`setseed` too), locks, statistics, other backends,
tells what there is (`to_regclass`, `pg_input_is_valid`, `pg_relation_size`, `obj_description`), or sleeps; and XPath
(`xpath`, `xmlexists`, `xmltable`): a short one takes minutes, in a library that the server's time limit does not end.
A function of an extension goes by its name alone, in `public`: where the extension is absent, that is a function of
the operator.
"""

# scalar
_SQLITE_SCALAR = """
    -> ->> abs char coalesce concat concat_ws format glob hex if ifnull iif instr length like likelihood likely
    lower ltrim max min nullif octet_length printf quote random replace round rtrim sign soundex substr
    substring trim typeof unhex unicode unistr unistr_quote unlikely upper
    subtype
"""
# aggregate and window
_SQLITE_AGGREGATE_AND_WINDOW = """
    avg count group_concat median percentile percentile_cont percentile_disc string_agg sum total cume_dist
    dense_rank first_value lag last_value lead nth_value ntile percent_rank rank row_number
"""
# mathematics
_SQLITE_MATHEMATICS = """
    acos acosh asin asinh atan atan2 atanh ceil ceiling cos cosh degrees exp floor ln log log10 log2 mod pi pow
    power radians sin sinh sqrt tan tanh trunc
"""
# date and time
_SQLITE_DATE_AND_TIME = """
    current_date current_time current_timestamp date datetime julianday strftime time timediff unixepoch
"""
# JSON
_SQLITE_JSON = """
    json json_array json_array_length json_error_position json_extract json_group_array json_group_object
    json_insert json_object json_patch json_pretty json_quote json_remove json_replace json_set json_type
    json_valid jsonb jsonb_array jsonb_extract jsonb_group_array jsonb_group_object jsonb_insert jsonb_object
    jsonb_patch jsonb_remove jsonb_replace jsonb_set
"""
# full text: FTS3, FTS4 and FTS5, on a table that may be read
_SQLITE_FULL_TEXT = """
    bm25 highlight match matchinfo offsets snippet
"""
SQLITE_FUNCTIONS = frozenset(
    word
    for group in (
        _SQLITE_SCALAR,
        _SQLITE_AGGREGATE_AND_WINDOW,
        _SQLITE_MATHEMATICS,
        _SQLITE_DATE_AND_TIME,
        _SQLITE_JSON,
        _SQLITE_FULL_TEXT,
    )
    for word in group.split()
)

SQLITE_TABLE_FUNCTIONS = frozenset({"json_each", "json_tree"})

# conditional and comparison
_POSTGRES_CONDITIONAL_AND_COMPARISON = """
    coalesce greatest least nullif num_nonnulls num_nulls
"""
# text
_POSTGRES_TEXT = """
    ascii bit_length btrim char_length character_length chr concat concat_ws decode encode format initcap left
    length lower lpad ltrim md5 normalize octet_length overlay position quote_ident quote_literal quote_nullable
    regexp_count regexp_instr regexp_like regexp_match regexp_matches regexp_replace regexp_split_to_array
    regexp_split_to_table regexp_substr repeat replace reverse right rpad rtrim sha224 sha256 sha384 sha512
    convert convert_from convert_to set_bit set_byte casefold parse_ident split_part starts_with string_to_array
    string_to_table strpos substr substring to_ascii to_hex translate trim unistr upper similarity
    strict_word_similarity word_similarity show_trgm levenshtein levenshtein_less_equal soundex difference
    metaphone dmetaphone dmetaphone_alt unaccent
    crc32 crc32c hashtext hashtextextended daitch_mokotoff text_soundex digest hmac to_bin to_oct
"""
# mathematics
_POSTGRES_MATHEMATICS = """
    abs acos acosd acosh asin asind asinh atan atan2 atan2d atand atanh cbrt ceil ceiling cos cosd cosh cot cotd
    degrees div erf exp factorial floor gcd lcm ln log log10 min_scale mod pi pow power radians random round
    scale sign sin sind sinh sqrt tan tand tanh trim_scale trunc width_bucket bit_count get_bit get_byte
    erfc gamma lgamma random_normal
"""
# date and time
_POSTGRES_DATE_AND_TIME = """
    age clock_timestamp current_date current_time current_timestamp date date_add date_bin date_part
    date_subtract date_trunc extract isfinite justify_days justify_hours justify_interval localtime
    localtimestamp make_date make_interval make_time make_timestamp make_timestamptz now overlaps
    statement_timestamp timeofday timezone to_char to_date to_number to_timestamp transaction_timestamp
"""
# conversion by a type's name
_POSTGRES_CONVERSION_BY_A_TYPE_S_NAME = """
    bool date float4 float8 int2 int4 int8 interval numeric text time timestamp timestamptz varchar
    bit bpchar bytea cidr json jsonb money name timetz varbit
"""
# aggregate, ordered-set and window
_POSTGRES_AGGREGATE_ORDERED_SET_AND_WI = """
    any_value array_agg avg bit_and bit_or bit_xor bool_and bool_or corr count covar_pop covar_samp cume_dist
    dense_rank every first_value grouping json_agg json_object_agg jsonb_agg jsonb_object_agg lag last_value
    lead max min mode nth_value ntile percent_rank percentile_cont percentile_disc range_agg range_intersect_agg
    rank regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy row_number
    stddev stddev_pop stddev_samp string_agg sum var_pop var_samp variance
    json_agg_strict json_arrayagg json_object_agg_strict json_object_agg_unique json_object_agg_unique_strict
    json_objectagg jsonb_agg_strict jsonb_object_agg_strict jsonb_object_agg_unique
    jsonb_object_agg_unique_strict
"""
# arrays, ranges, rows
_POSTGRES_ARRAYS_RANGES_ROWS = """
    array array_append array_cat array_fill array_reverse array_sample array_shuffle array_sort array_dims
    array_length array_lower array_ndims array_position array_positions array_prepend array_remove array_replace
    array_to_string array_upper cardinality generate_series generate_subscripts isempty lower_inc lower_inf row
    range_merge trim_array unnest upper_inc upper_inf daterange int4range int8range numrange tsrange tstzrange
    multirange datemultirange int4multirange int8multirange nummultirange tsmultirange tstzmultirange
    arraycontained arraycontains arrayoverlap enum_first enum_last enum_range
"""
# JSON
_POSTGRES_JSON = """
    array_to_json json_array_elements json_array_elements_text json_array_length json_build_array
    json_build_object json_each json_each_text json_extract_path json_extract_path_text json_object
    json_object_keys json_strip_nulls json_typeof jsonb_array_elements jsonb_array_elements_text
    jsonb_array_length jsonb_build_array jsonb_build_object jsonb_each jsonb_each_text jsonb_extract_path
    jsonb_extract_path_text jsonb_insert jsonb_object jsonb_object_keys jsonb_path_exists jsonb_path_match
    jsonb_path_query jsonb_path_query_array jsonb_path_query_first jsonb_pretty jsonb_set jsonb_strip_nulls
    jsonb_typeof row_to_json to_json to_jsonb json_exists json_query json_value json_populate_record
    json_populate_recordset json_to_record json_to_recordset jsonb_path_exists_tz jsonb_path_match_tz
    jsonb_path_query_array_tz jsonb_path_query_first_tz jsonb_path_query_tz jsonb_populate_record
    jsonb_populate_recordset jsonb_set_lax jsonb_to_record jsonb_to_recordset
    json_array json_scalar json_serialize json_table jsonb_array_element jsonb_array_element_text jsonb_concat
    jsonb_contained jsonb_contains jsonb_delete jsonb_delete_path jsonb_exists jsonb_exists_all
    jsonb_exists_any jsonb_object_field jsonb_object_field_text jsonb_populate_record_valid
"""
# network addresses, points and shapes, identifiers, sizes of values
_POSTGRES_OTHER_TYPES = """
    abbrev broadcast family host hostmask inet_merge inet_same_family masklen netmask network set_masklen
    area box center circle diameter height isclosed isopen line lseg npoints path point polygon radius slope width
    gen_random_uuid pg_column_size pg_size_bytes pg_size_pretty pg_typeof uuid_extract_timestamp
    uuid_extract_version uuidv4 uuidv7
    bound_box diagonal
"""
# full text, without dictionaries chosen by name
_POSTGRES_FULL_TEXT_WITHOUT_DICTIONARI = """
    plainto_tsquery phraseto_tsquery setweight strip to_tsquery to_tsvector ts_headline ts_rank ts_rank_cd
    websearch_to_tsquery array_to_tsvector numnode querytree ts_delete ts_filter tsquery_phrase
    tsvector_to_array
    json_to_tsvector jsonb_to_tsvector
"""
# XML, without what evaluates XPath: no external entity is loaded, and none of these runs a query
_POSTGRES_XML = """
    xml_is_well_formed xml_is_well_formed_content xml_is_well_formed_document xmlagg xmlattributes xmlcomment xmlconcat
    xmlelement xmlforest xmlparse xmlserialize xmltext
"""
# extensions: hstore, ltree, intarray, cube, earthdistance, uuid-ossp
_POSTGRES_EXTENSIONS = """
    akeys avals defined each exist exists_all exists_any hstore hstore_to_array hstore_to_json hstore_to_json_loose
    hstore_to_jsonb hstore_to_jsonb_loose hstore_to_matrix skeys slice slice_array svals
    index lca ltree2text nlevel subltree subpath text2ltree
    icount idx intset sort sort_asc sort_desc subarray uniq
    cube cube_dim cube_distance cube_ll_coord cube_ur_coord earth earth_box earth_distance latitude ll_to_earth
    longitude
    uuid_generate_v3 uuid_generate_v4 uuid_generate_v5 uuid_nil uuid_ns_dns uuid_ns_oid uuid_ns_url uuid_ns_x500
"""
# pgvector, TimescaleDB
_POSTGRES_VECTORS_AND_SERIES = """
    binary_quantize cosine_distance hamming_distance inner_product jaccard_distance l1_distance l2_distance
    l2_normalize subvector vector_dims vector_norm first histogram interpolate last locf time_bucket
    time_bucket_gapfill
"""
# PostGIS, without what reads statistics, runs a query or opens a raster's file
_POSTGRES_GEOMETRY = """
    st_area st_asbinary st_asewkb st_asewkt st_asgeojson st_asgml st_askml st_asmvt st_asmvtgeom st_assvg st_astext
    st_azimuth st_boundary st_buffer st_centroid st_clipbybox2d st_closestpoint st_clusterdbscan st_clusterkmeans
    st_collect st_collectionextract st_concavehull st_contains st_containsproperly st_convexhull st_coveredby
    st_covers st_crosses st_difference st_dimension st_disjoint st_distance st_distancesphere st_distancespheroid
    st_dump st_dumppoints st_dwithin st_endpoint st_envelope st_equals st_expand st_extent st_exteriorring
    st_flipcoordinates st_force2d st_geogfromtext st_geohash st_geometryn st_geometrytype st_geomfromewkt
    st_geomfromgeohash st_geomfromgeojson st_geomfromtext st_geomfromwkb st_hausdorffdistance st_interiorringn
    st_intersection st_intersects st_isclosed st_isempty st_issimple st_isvalid st_isvalidreason st_length
    st_lineinterpolatepoint st_linelocatepoint st_linemerge st_linesubstring st_m st_makeenvelope st_makeline
    st_makepoint st_makepolygon st_makevalid st_maxdistance st_multi st_ndims st_npoints st_numgeometries
    st_numinteriorrings st_overlaps st_perimeter st_point st_pointfromtext st_pointn st_pointonsurface st_polygon
    st_project st_relate st_reverse st_scale st_segmentize st_setsrid st_shortestline st_simplify
    st_simplifypreservetopology st_snaptogrid st_srid st_startpoint st_subdivide st_symdifference st_tileenvelope
    st_touches st_transform st_translate st_unaryunion st_union st_voronoipolygons st_within st_x st_xmax st_xmin
    st_y st_ymax st_ymin st_z
"""
POSTGRES_FUNCTIONS = frozenset(
    word
    for group in (
        _POSTGRES_CONDITIONAL_AND_COMPARISON,
        _POSTGRES_TEXT,
        _POSTGRES_MATHEMATICS,
        _POSTGRES_DATE_AND_TIME,
        _POSTGRES_CONVERSION_BY_A_TYPE_S_NAME,
        _POSTGRES_AGGREGATE_ORDERED_SET_AND_WI,
        _POSTGRES_ARRAYS_RANGES_ROWS,
        _POSTGRES_JSON,
        _POSTGRES_OTHER_TYPES,
        _POSTGRES_FULL_TEXT_WITHOUT_DICTIONARI,
        _POSTGRES_XML,
        _POSTGRES_EXTENSIONS,
        _POSTGRES_VECTORS_AND_SERIES,
        _POSTGRES_GEOMETRY,
    )
    for word in group.split()
)
