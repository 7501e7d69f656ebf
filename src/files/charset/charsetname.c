/* Lists names of charsets: Python's codecs and aliases for which iconv has a table. Where the
 * tables differ, a superset is used: CP932 for Shift_JIS (whose backslash iconv reads as a yen
 * sign). */
#include "config.h"

#include "files/charset/charset.h"

#include <ctype.h>
#include <string.h>

const struct hr_charset hr_charset_utf8 = {"utf_8", "UTF-8", HR_CHARSET_UTF8};

static const struct {
	struct hr_charset charset;
	const char *aliases; /* separated by spaces; NULL: none */
} charsets[] = {
    {{"big5", "BIG5", HR_CHARSET_MULTIBYTE}, "big5_tw csbig5 x_mac_trad_chinese"},
    {{"big5hkscs", "BIG5-HKSCS", HR_CHARSET_MULTIBYTE}, "big5_hkscs hkscs"},
    {{"cp037", "CP037", HR_CHARSET_CHARMAP},
	"037 csibm037 ebcdic_cp_ca ebcdic_cp_nl ebcdic_cp_us ebcdic_cp_wt ibm037 ibm039"},
    {{"cp1026", "CP1026", HR_CHARSET_CHARMAP}, "1026 csibm1026 ibm1026"},
    {{"cp1125", "CP1125", HR_CHARSET_CHARMAP}, "1125 cp866u ibm1125 ruscii"},
    {{"cp1140", "CP1140", HR_CHARSET_CHARMAP}, "1140 ibm1140"},
    {{"cp1250", "CP1250", HR_CHARSET_CHARMAP}, "1250 windows_1250"},
    {{"cp1251", "CP1251", HR_CHARSET_CHARMAP}, "1251 windows_1251"},
    {{"cp1252", "CP1252", HR_CHARSET_CHARMAP}, "1252 windows_1252"},
    {{"cp1253", "CP1253", HR_CHARSET_CHARMAP}, "1253 windows_1253"},
    {{"cp1254", "CP1254", HR_CHARSET_CHARMAP}, "1254 windows_1254"},
    {{"cp1255", "CP1255", HR_CHARSET_CHARMAP}, "1255 windows_1255"},
    {{"cp1256", "CP1256", HR_CHARSET_CHARMAP}, "1256 windows_1256"},
    {{"cp1257", "CP1257", HR_CHARSET_CHARMAP}, "1257 windows_1257"},
    {{"cp1258", "CP1258", HR_CHARSET_CHARMAP}, "1258 windows_1258"},
    {{"cp273", "CP273", HR_CHARSET_CHARMAP}, "273 csibm273 ibm273"},
    {{"cp424", "CP424", HR_CHARSET_CHARMAP}, "424 csibm424 ebcdic_cp_he ibm424"},
    {{"cp437", "CP437", HR_CHARSET_CHARMAP}, "437 cspc8codepage437 ibm437"},
    {{"cp500", "CP500", HR_CHARSET_CHARMAP}, "500 csibm500 ebcdic_cp_be ebcdic_cp_ch ibm500"},
    {{"cp737", "CP737", HR_CHARSET_CHARMAP}, NULL},
    {{"cp775", "CP775", HR_CHARSET_CHARMAP}, "775 cspc775baltic ibm775"},
    {{"cp850", "CP850", HR_CHARSET_CHARMAP}, "850 cspc850multilingual ibm850"},
    {{"cp852", "CP852", HR_CHARSET_CHARMAP}, "852 cspcp852 ibm852"},
    {{"cp855", "CP855", HR_CHARSET_CHARMAP}, "855 csibm855 ibm855"},
    {{"cp856", "CP856", HR_CHARSET_CHARMAP}, NULL},
    {{"cp857", "CP857", HR_CHARSET_CHARMAP}, "857 csibm857 ibm857"},
    {{"cp858", "CP858", HR_CHARSET_CHARMAP}, "858 csibm858 ibm858"},
    {{"cp860", "CP860", HR_CHARSET_CHARMAP}, "860 csibm860 ibm860"},
    {{"cp861", "CP861", HR_CHARSET_CHARMAP}, "861 cp_is csibm861 ibm861"},
    {{"cp862", "CP862", HR_CHARSET_CHARMAP}, "862 cspc862latinhebrew ibm862"},
    {{"cp863", "CP863", HR_CHARSET_CHARMAP}, "863 csibm863 ibm863"},
    {{"cp864", "CP864", HR_CHARSET_CHARMAP}, "864 csibm864 ibm864"},
    {{"cp865", "CP865", HR_CHARSET_CHARMAP}, "865 csibm865 ibm865"},
    {{"cp866", "CP866", HR_CHARSET_CHARMAP}, "866 csibm866 ibm866"},
    {{"cp869", "CP869", HR_CHARSET_CHARMAP}, "869 cp_gr csibm869 ibm869"},
    {{"cp874", "CP874", HR_CHARSET_CHARMAP}, NULL},
    {{"cp932", "CP932", HR_CHARSET_MULTIBYTE}, "932 ms932 ms_kanji mskanji"},
    {{"cp949", "CP949", HR_CHARSET_MULTIBYTE}, "949 ms949 uhc"},
    {{"cp950", "CP950", HR_CHARSET_MULTIBYTE}, "950 ms950"},
    {{"euc_jisx0213", "EUC-JISX0213", HR_CHARSET_MULTIBYTE}, "eucjisx0213"},
    {{"euc_jp", "EUC-JP", HR_CHARSET_MULTIBYTE}, "eucjp u_jis ujis"},
    {{"euc_kr", "EUC-KR", HR_CHARSET_MULTIBYTE},
	"euckr korean ks_c_5601 ks_c_5601_1987 ks_x_1001 ksc5601 ksx1001 x_mac_korean"},
    {{"gb18030", "GB18030", HR_CHARSET_MULTIBYTE}, "gb18030_2000"},
    {{"gb2312", "GBK", HR_CHARSET_MULTIBYTE}, "chinese csiso58gb231280 euc_cn euccn eucgb2312_cn "
					      "gb2312_1980 gb2312_80 iso_ir_58 x_mac_simp_chinese"},
    {{"gbk", "GBK", HR_CHARSET_MULTIBYTE}, "936 cp936 ms936"},
    {{"hp_roman8", "HP-ROMAN8", HR_CHARSET_CHARMAP}, "cp1051 ibm1051 r8 roman8"},
    {{"iso2022_jp", "ISO-2022-JP", HR_CHARSET_MULTIBYTE}, "csiso2022jp iso2022jp iso_2022_jp"},
    {{"iso2022_jp_2", "ISO-2022-JP-2", HR_CHARSET_MULTIBYTE}, "iso2022jp_2 iso_2022_jp_2"},
    {{"iso2022_jp_3", "ISO-2022-JP-3", HR_CHARSET_MULTIBYTE}, "iso2022jp_3 iso_2022_jp_3"},
    {{"iso2022_kr", "ISO-2022-KR", HR_CHARSET_MULTIBYTE}, "csiso2022kr iso2022kr iso_2022_kr"},
    {{"iso8859_10", "ISO-8859-10", HR_CHARSET_CHARMAP},
	"csisolatin6 iso_8859_10 iso_8859_10_1992 iso_ir_157 l6 latin6"},
    {{"iso8859_11", "ISO-8859-11", HR_CHARSET_CHARMAP}, "iso_8859_11 iso_8859_11_2001 thai"},
    {{"iso8859_13", "ISO-8859-13", HR_CHARSET_CHARMAP}, "iso_8859_13 l7 latin7"},
    {{"iso8859_14", "ISO-8859-14", HR_CHARSET_CHARMAP},
	"iso_8859_14 iso_8859_14_1998 iso_celtic iso_ir_199 l8 latin8"},
    {{"iso8859_15", "ISO-8859-15", HR_CHARSET_CHARMAP}, "iso_8859_15 l9 latin9"},
    {{"iso8859_16", "ISO-8859-16", HR_CHARSET_CHARMAP},
	"iso_8859_16 iso_8859_16_2001 iso_ir_226 l10 latin10"},
    {{"iso8859_2", "ISO-8859-2", HR_CHARSET_CHARMAP},
	"csisolatin2 iso_8859_2 iso_8859_2_1987 iso_ir_101 l2 latin2"},
    {{"iso8859_3", "ISO-8859-3", HR_CHARSET_CHARMAP},
	"csisolatin3 iso_8859_3 iso_8859_3_1988 iso_ir_109 l3 latin3"},
    {{"iso8859_4", "ISO-8859-4", HR_CHARSET_CHARMAP},
	"csisolatin4 iso_8859_4 iso_8859_4_1988 iso_ir_110 l4 latin4"},
    {{"iso8859_5", "ISO-8859-5", HR_CHARSET_CHARMAP},
	"csisolatincyrillic cyrillic iso_8859_5 iso_8859_5_1988 iso_ir_144"},
    {{"iso8859_6", "ISO-8859-6", HR_CHARSET_CHARMAP},
	"arabic asmo_708 csisolatinarabic ecma_114 iso_8859_6 iso_8859_6_1987 iso_ir_127"},
    {{"iso8859_7", "ISO-8859-7", HR_CHARSET_CHARMAP},
	"csisolatingreek ecma_118 elot_928 greek greek8 iso_8859_7 iso_8859_7_1987 iso_ir_126"},
    {{"iso8859_8", "ISO-8859-8", HR_CHARSET_CHARMAP},
	"csisolatinhebrew hebrew iso_8859_8 iso_8859_8_1988 iso_ir_138"},
    {{"iso8859_9", "ISO-8859-9", HR_CHARSET_CHARMAP},
	"csisolatin5 iso_8859_9 iso_8859_9_1989 iso_ir_148 l5 latin5"},
    {{"johab", "JOHAB", HR_CHARSET_MULTIBYTE}, "cp1361 ms1361"},
    {{"koi8_r", "KOI8-R", HR_CHARSET_CHARMAP}, "cskoi8r"},
    {{"koi8_t", "KOI8-T", HR_CHARSET_CHARMAP}, NULL},
    {{"koi8_u", "KOI8-U", HR_CHARSET_CHARMAP}, NULL},
    {{"kz1048", "RK1048", HR_CHARSET_CHARMAP}, "kz_1048 rk1048 strk1048_2002"},
    {{"latin_1", "ISO-8859-1", HR_CHARSET_ORDINAL},
	"8859 cp819 csisolatin1 ibm819 iso8859 iso8859_1 iso_8859_1 iso_8859_1_1987 iso_ir_100 l1 "
	"latin latin1"},
    {{"mac_cyrillic", "MAC-CYRILLIC", HR_CHARSET_CHARMAP}, "maccyrillic"},
    {{"mac_latin2", "MAC-CENTRALEUROPE", HR_CHARSET_CHARMAP},
	"mac_centeuro maccentraleurope maclatin2"},
    {{"mac_roman", "MACINTOSH", HR_CHARSET_CHARMAP}, "macintosh macroman"},
    {{"ptcp154", "PT154", HR_CHARSET_CHARMAP}, "cp154 csptcp154 cyrillic_asian pt154"},
    {{"shift_jis", "CP932", HR_CHARSET_MULTIBYTE}, "csshiftjis s_jis shiftjis sjis x_mac_japanese"},
    {{"shift_jisx0213", "SHIFT_JISX0213", HR_CHARSET_MULTIBYTE},
	"s_jisx0213 shiftjisx0213 sjisx0213"},
    {{"tis_620", "TIS-620", HR_CHARSET_CHARMAP},
	"iso_ir_166 tis620 tis_620_0 tis_620_2529_0 tis_620_2529_1"},
};

/* Python knows these names too, but a file that declares one has no effect. */
static const char no_charsets[] =
    "646 ansi ansi_x3.4_1968 ansi_x3.4_1986 ansi_x3_4_1968 ascii base64 base64_codec "
    "base_64 bz2 bz2_codec cp1006 cp367 cp65001 cp720 csascii dbcs euc_jis2004 "
    "euc_jis_2004 eucjis2004 hex hex_codec hz hz_gb hz_gb_2312 hzgb ibm367 "
    "iso2022_jp_1 iso2022_jp_2004 iso2022_jp_ext iso2022jp_1 iso2022jp_2004 "
    "iso2022jp_ext iso646_us iso_2022_jp_1 iso_2022_jp_2004 iso_2022_jp_ext "
    "iso_646.irv_1991 iso_ir_6 jisx0213 mac_greek mac_iceland mac_turkish macgreek "
    "maciceland macturkish mbcs quopri quopri_codec quoted_printable quotedprintable "
    "rot13 rot_13 s_jis_2004 shift_jis_2004 shiftjis2004 sjis_2004 u16 u32 u7 u8 "
    "unicode_1_1_utf_7 unicodebigunmarked unicodelittleunmarked us us_ascii utf utf16 "
    "utf32 utf7 utf8 utf8_ucs2 utf8_ucs4 utf_16 utf_16_be utf_16_le utf_16be utf_16le "
    "utf_32 utf_32_be utf_32_le utf_32be utf_32le utf_7 utf_8 uu uu_codec zip zlib "
    "zlib_codec";

static bool
names(const char *words, const char *key, size_t len)
{
	const char *p = words;
	size_t n;

	for (; p != NULL && *p != '\0'; p += n + (p[n] == ' ')) {
		n = strcspn(p, " ");
		if (n == len && memcmp(p, key, n) == 0)
			return true;
	}
	return false;
}

const struct hr_charset *
hr_charset_find(const char *name, size_t len, bool *ret_text)
{
	char key[64];
	size_t i;

	*ret_text = false;
	if (len >= sizeof(key))
		return NULL;
	for (i = 0; i < len; i++)
		key[i] = name[i] == '-' ? '_' : (char)tolower((unsigned char)name[i]);
	key[len] = '\0';
	for (i = 0; i < sizeof(charsets) / sizeof(charsets[0]); i++)
		if (strcmp(charsets[i].charset.name, key) == 0 ||
		    names(charsets[i].aliases, key, len)) {
			*ret_text = true;
			return &charsets[i].charset;
		}
	return names(no_charsets, key, len) ? &hr_charset_utf8 : NULL;
}
