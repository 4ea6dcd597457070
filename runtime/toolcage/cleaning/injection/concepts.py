# ruff: noqa: E501 - tables of words read better in long lines
"""Words of many languages by what they mean to an attack: what lets the learned part judge wording that it never saw.

An instruction to a model is made of few meanings (drop, old, orders; give, your, secret; play, persona, without
limits) and of countless words. Each word is looked up by its stem; Han, Kana and Hangul, which have no spaces, by
substring. A word without an entry means nothing here. Deliberately no grammar: which meanings stand in which order,
and how far apart, is weighed by `learned`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

# A trailing `-` marks a stem; other words must match whole.
_LEXICON: Final[dict[str, str]] = {
    "DROP": "ignor- disregard- forget- overrid- bypass- overlook neglect- discard- abandon- skip- cancel- erase- scratch "
    "ignorier- vergiss vergess- missacht- oubli- fais faites ignore- olvid- descart- desestim- omit- dimentic- "
    "trascur- esque- desconsider- игнорир- проигнорир- забуд- отмен- отбрось- negeer- vergeet zignoruj zapomnij "
    "ignoruj تجاهل انس unut yoksay abaikan lupakan dismiss- suppress- revoke- rescind- annul- nullif- void "
    "supersed- overrul- wipe purge drop dropping shred strike unlearn- delete- throw toss vernachlässig- "
    "streiche- verwirf- verwerf- übergeh- lass négliger négligez néglige annule- écarte- laisse jette supprimez "
    "omet- deja dejad borra- anula- prescind- haz haga caso tralascia- scarta- annulla- lascia scorda- descarte- "
    "anule deixe отмени- пропусти- забудь выкинь ausblend- laat vergeet- genegeerd pomiń odrzuć anuluj zignorowa- "
    "glöm- ignorera- strunta glem- zapomeň- ignorujte ignoruj- uită ignoră ignorați забудьте ігноруй- felejts- "
    "hagyd unohda jätä تجاهلي تجاهلوا اترك ألغِ התעלם שכח התעלמו नज़रअंदाज़ अनदेखा भूल görmezden unutun yoksayın "
    "hiçe bỏ quên abaikanlah lupakanlah ξέχασε αγνόησε αγνοήστε فراموش نادیده",
    "ORDERS": "instruction- instruct- prompt- rule rules direction- directive- guideline- command- polic- constraint- "
    "orders task tasks programming safeguard- guardrail- anweisung- vorgabe- regel- befehl- auftrag aufgabe- "
    "consigne- règle- regle- directive- tâche instrucci- directri- regla- indicaci- órden- tarea- istruzion- "
    "regol- direttiv- compito instruç- regra- diretri- tarefa- инструкц- правил- указани- команд- задани- "
    "instructies regels polece- zasad- التعليمات تعليمات التعليمات- الأوامر أوامر القواعد talimat- kural- "
    "instruksi perintah briefing- brief mandate- mission job assignment- objective- protocol- requirement- "
    "specification- weisung- richtlinie- einstellung- vorschrift- leitlinie- instruktion- missions règlement- "
    "ordre ordres misión normas norma pautas cometido ordini mansion- mandato orden ordens norma- comando- "
    "приказ- распоряжени- установк- задач- opdracht- richtlijn- instructie- zadani- wytyczn- reguł- polecen- "
    "instrukc- instrukce pokyn- pravidl- regler order uppgift- oppgave- opgave- instrucțiun- reguli utasítás- "
    "szabály- ohje- säännö- התחיל הוראות ההוראות ההנחיות כללים निर्देश- नियम- आदेश- yönerge- komut- görev- hướng "
    "lệnh quy instruksi- aturan οδηγί- εντολ- κανόν- вказівк- інструкц- правила دستور- قوانین دستورالعمل",
    "OLD": "previous- prior above earlier preceding foregoing original initial existing former past old before vorherig- "
    "bisherig- früher- obig- ursprünglich- alte précédent- antérieur- ancien- initial- anterior- previ- original- "
    "preceden- anteceden- iniziali предыдущ- прежн- прошл- ранее выше السابقة سابقة önceki sebelumnya foregone "
    "beforehand previously aforesaid aforementioned outdated obsolete bisher zuvor vorig- eben davor préalable- "
    "précédemment jusqu'ici anteriormente hasta previas previos prima finora anteriores prévias até ранних старые "
    "старых прежде vorige eerdere voorgaande poprzedni- wcześniejsz- dotychczas- tidigare föregående tidligere "
    "forrige předchozí dosavadní anterioare precedente korábbi eddigi aiemm- edelli- הקודמות קודמות पिछल- पहले "
    "önceki- trước sebelum προηγούμεν- попередн- قبلی پیشین",
    "ALL": "all everything anything every any whatever alle alles tout toute toutes tous todo todos todas toda tutte "
    "tutto tudo все всё всех جميع كل entire whole complete completely wholly sämtlich- ganze komplett gesamte "
    "intégralité entera enteras íntegro ogni intero qualsiasi qualquer inteiro каждый любые полностью volledig "
    "wszystk- cał- alla allt hele veškeré všechn- všech toate minden kaikki כל सभी सब bütün tüm hepsi tất semua "
    "segala всі усі همه",
    "MODEL": "ai assistant- llm llms chatbot- gpt chatgpt claude gemini copilot bot bots agent agents llama bard "
    "sprachmodell- ki assistenten modèle modelo modello ia asistente assistente ассистент- ии модел- нейросет- "
    "المساعد مساعد نموذج asisten chatbots copilots model models mistral deepseek sydney machine robot robots "
    "assistants language-model neural sprachmodell chatassistent- assistenzsystem- maschine modèles assistante "
    "intelligence asistentes inteligencia assistenti intelligenza inteligência robô chatbota бот боту чат-бот "
    "нейронн- языков- taalmodel assistent asystent- sztuczn- modelu språkmodell- asistent- modelul mesterséges "
    "tekoäly- avustaja מודל עוזר בינה सहायक मॉडल एआई asistan- yapay zeka modeli mô trợ kecerdasan asisten- βοηθ- "
    "μοντέλο асистент- мовн- دستیار مدل هوش",
    "USER": "user user's users reader human humans customer- client- benutzer- nutzer- leser utilisateur- usuario- utente "
    "utenti usuário- пользовател- المستخدم kullanıcı pengguna visitor- caller- recipient- subscriber- employee's "
    "kunde- kunden anwender- besucher- client clients lecteur- cliente clientes lector- clienti lettor- leitor- "
    "клиент- читател- gebruiker- klant- użytkownik- klient- användar- bruker- uživatel- utilizator- felhasznál- "
    "käyttäj- המשתמש למשתמש उपयोगकर्ता ग्राहक kullanıcı- müşteri- dùng pengguna- pelanggan χρήστη- користувач- "
    "کاربر",
    "YOU": "you u thou du dich dir sie ihnen tu te toi vous tú ti usted você voce ты тебя тебе вы вам вас أنت yall "
    "yourselves eure ihr euch toi-même vosotros contigo voi vocês тобой jij ty ciebie tobie dig deg dej tine sinä "
    "sinun अाप आप तुम तुम्हें sen siz sana size bạn kamu anda σύ εσύ εσένα ти ви שאתה אתה לך تو شما",
    "YOUR": "your yours yourself dein- ihr- ton ta tes votre vos su sus tua tuo tue suo seu sua teu твой твои твоё твою "
    "твоя твоих ваш- свои своих vuestr- tuyo vostro vostra vosso твоим твоими вашей ваши jouw uw twoje twój twoja "
    "twoich din ditt dina deres tvoje tvůj tvé tău tale आपका आपकी अपने अपनी तुम्हारा senin sizin mu σου твій твоє "
    "שלך",
    "ME": "me my i us mir mich ich moi je mi me yo io eu mim мне меня я мой лично لي mine myself meinem meinen meine "
    "mein mon mes moi-même mí mis conmigo mio mia meu minha мою моему моего mijn mij mnie moje moj- mig mitt min "
    "mně mea nekem minulle לי שלי मुझे मेरा मेरे bana benim tôi saya aku μου мені моє من",
    "SECRET": "password- passcode- passphrase- secret secrets key keys credential- token tokens pin confidential passwort- "
    "kennwort- geheim- zugangsdaten contraseña- contrasena- clave- secreto- senha- segredo- parola chiav- segret- "
    "пароль пароля парол- секрет- ключ- wachtwoord hasło السر سر şifre kata_sandi passe classified "
    "restricted sensitive codeword- keyword- login- 2fa otp one-time cvv seed mnemonic unlock- "
    "combination- vault cipher-key api-key apikey passwörter zugriff- schlüssel code-wort "
    "losung parole vertraulich- zugangscode mdp secrète- clé clés clef clefs identifiant- confidentiel- "
    "contraseñas código códigos claves credencial- confidencial- secreta- codice codici chiave credenzial- "
    "riservat- segreta segrete chave- credencia- confidencia- sigilos- код кода коды кодов учётн- конфиденциальн- "
    "логин- секретн- тайн- sleutel- toegangscode- inloggegevens hasła haseł tajn- sekret- klucz- kod kodu poufn- "
    "lösenord- passord- adgangskode- hemlig- hemmelig- nyckel- heslo- tajemství klíč parolă secret- cheia jelszó "
    "titk- kulcs salasana- salai- הסיסמה סיסמה סוד סודי המפתח पासवर्ड गुप्त कुंजी parola- gizli- anahtar- mật bí "
    "khóa sandi rahasia kunci κωδικ- μυστικ- κλειδ- رمز محرمانه کلید كلمة المرور سري السرية مفتاح المفتاح",
    "PERSONAL": "birth- birthday- birthdate address- phone balance- residence lives live salary ssn favourite favorite email "
    "e-mail age initials surname wealth- income iban account accounts geburtstag geburtsdatum adresse "
    "telefonnummer kontostand gehalt wohnt anniversaire naissance salaire solde vit nacimiento dirección saldo "
    "vive teléfono nascita indirizzo nascimento endereço рожден- адрес телефон- живёт живет баланс зарплат- "
    "surname- birthplace- hometown- residence- passport- licence- license- plate- medical health patient- "
    "diagnosis salary- income- wages credit card cards bank banking balances wohnort- anschrift- kreditkarte- "
    "konto kontodaten handynummer personalausweis- krankenakte- revenu- compte comptes carte adresse- téléphone "
    "numéro domicile médical- cuenta cuentas tarjeta- domicilio cumpleaños médic- conto conti carta compleanno "
    "telefono conta contas cartão aniversário счёт- карт- паспорт- номер- adres rekening- telefoonnummer "
    "geboortedatum adres- konta numer telefon- urodzeni- adress- födelsedat- bankkonto narozen- adresa lakcím "
    "születés- osoite- כתובת יומולדת טלפון पता जन्मदिन फ़ोन खाता adresi doğum telefon hesap địa sinh nhật alamat "
    "lahir διεύθυνση γέννησης адрес- народжен- آدرس تولد عنوان ميلاد هاتف رصيد",
    "GIVE": "tell give show reveal share disclose provide print output say state write display repeat list confirm recite "
    "hand spell describe enter describe sag sage gib zeig zeige nenn- verrat- schreib- antworte drucke donne dis "
    "montre révèle- écris affiche répète réponds dites indiquez dime di muestra revela- escribe comparte responde "
    "repite dimmi mostra scrivi rispondi condividi ripeti mostre diga escreva repita responda скажи покажи напиши "
    "выведи назови раскрой сообщи дай ответь повтори أخبرني اكتب اعرض أظهر söyle yaz tunjukkan katakan dump leaks "
    "expose divulge unveil blurt copy paste quote mention echo emit return speak utter present dictate surface "
    "announce declare claim assert insert nenne rück heraus verkünde offenbar- ausgeben zeigen sagen nennen "
    "wiederhol- schildere beschreib- kopier- zitier- liste formulier- donnez donner dire révélez révéler affichez "
    "montrez indique récite décris écrivez copie copiez cite énumère lis communique partage fournis divulgue dé "
    "muéstrame dame dígame revélame escríb- copia cita enumera lee comunica proporciona muestre revele rivela- "
    "mostrami descriv- elenca leggi fornisci scrivimi dillo ditemi conte diz mostre-me descreva leia forneça "
    "compartilhe informe расскажи расскажите перечисли опиши процитируй прочитай передай сообщите напишите "
    "покажите скажите выдай vertel geef toon noem schrijf herhaal antwoord zeg onthul powiedz podaj pokaż napisz "
    "ujawnij wypisz powtórz wyświetl odpowiedz berätta visa skriv säg avslöja fortell vis si gjenta fortæl řekni "
    "napiš ukaž prozraď vypiš zopakuj spune scrie arată dezvăluie mondd írd mutasd áruld kerro näytä kirjoita "
    "paljasta אמור תגיד כתוב הצג חשוף ספר गो बताओ बताएं लिखो लिखें दिखाओ दिखाएं बताइए açıkla göster söyleyin "
    "yazın ver anlat nói viết hiển cho tiết lộ tuliskan beri tampilkan sebutkan ungkapkan beritahu πες γράψε "
    "δείξε αποκάλυψε δώσε розкрий повідом بگو بنویس نشان افشا قل اذكر اكشف اطبع أعطني أفصح كرر",
    "SEND": "send- forward- upload- post posts transmit exfiltrat- export transfer wire leak email mail sende schick- "
    "leite überweis- envoie- envoyez transfère- envía envia- reenvía transfiere manda invia inoltra trasferisci "
    "envie transfira encaminhe отправь отправ- перешли переведи пришли أرسل gönder kirim deliver- dispatch- relay "
    "relays submit- push smuggle- publish- cc bcc übermittle- weiterleit- hochlad- versende- mail- poste "
    "transmet- transmets téléverse publie postez envoyer transmite sube publica mándame enviar carica spedisci "
    "pubblica manda- envie- publique mande вышли загрузи опубликуй отправьте передайте stuur verstuur doorsturen "
    "plaats wyślij prześlij opublikuj przelej skicka sänd ladda pošli odešli přepošli trimite încarcă küldd "
    "töltsd lähetä שלח העבר העלה भेज- gönderin ilet yükle gửi kirimkan teruskan unggah στείλε ανέβασε надішли "
    "відправ- بفرست ارسال حوّل انشر",
    "ENCODE": "leetspeak leet base64 rot13 poem haiku acronym acrostic backwards reverse reversed morse letter letters "
    "spelled spelling translate translat- hex hexadecimal binary rhyme rhyming riddle cipher encode- decode- song "
    "limerick pig latin pinyin emoji emojis digit digits encrypt- decrypt- json übersetz- gedicht traduis traduce "
    "poème poema ascii unicode hexadecimal- caesar vigenere atbash braille semaphore nato phonetic alphabet- "
    "anagram- palindrom- interleav- interlace- concatenat- combine- join merge split- parts pieces substitut- "
    "replace- uppercase lowercase dotted dashes hyphens spaces separated comma reverse- backward mirror- "
    "buchstabier- rückwärts verschlüssel- kodier- dekodier- entschlüssel- zusammen buchstabe- silbe- reim- lied "
    "épelle- envers décode- déchiffre- lettre- chante chanson acrostiche rime deletrea- revés descifra- "
    "decodifica- letra- canción rima lettera lettere contrario decifra decodifica poesia canzone filastrocca "
    "soletre trás decodifique letras canção буквам наоборот расшифру- зашифру- стих- песн- букв- spel "
    "achterstevoren vertaal wspak przetłumacz wiersz liter- baklänges dikt vers bokstav- pozpátku báseň přelož "
    "verset fordítsd runo käännä הפוך שיר תרגם उल्टा कविता अनुवाद tersten şiir çevir harf ngược thơ dịch terbalik "
    "puisi terjemahkan ανάποδα ποίημα μετάφρασε навпаки вірш переклади بالعكس قصيدة ترجم شعر برعکس",
    "PLAY": "pretend- act acting acts roleplay- play playing simulat- imagin- suppos- hypothetic- assum- scenario- "
    "character- persona fiction- world universe dystopi- story game film movie parallel virtual reality narrator "
    "stelle stell vorstell- spiele imagine- suppos- imagina- finge fingi finja immagina представ- притвор- "
    "вообраз- تخيل impersonat- portray- mimic- emulat- embod- role roles rp rpg alter ego dream- novel- script- "
    "screenplay- dialogue- actor- actress villain- wizard- grandma grandmother- fairy fairytale plot- "
    "protagonist- immersiv- improvis- theatre stage scene- episode- spiel- rolle- figur- geschichte- märchen- "
    "theater- erzähl- traum- szene- jeu joue jouez rôle- personnage- histoire- conte- scène- rêve- théâtre roman "
    "juega jugar papel personaje- historia- cuento- escena- sueño- novela- gioca ruolo personagg- storia- favola "
    "fiaba scena sogno romanzo teatro jogue personage- história- cena sonho игра- роль роли сказк- истори- сцен- "
    "персонаж- роман- театр- сыграй speel rol verhaal sprookje personage toneel udawaj wyobraź graj rol- bajk- "
    "histori- postać- låtsas spela roll berätt- saga lat rolle eventyr historie předstírej představ hraj příběh "
    "pohádk- prefă- imaginează joacă poveste képzeld játssz szerep- mese kuvittele esitä rooli satu דמיין תפקיד "
    "סיפור העמד कल्पना नाटक भूमिका कहानी hayal oyun masal hikaye numara đóng vai truyện berpura bayangkan peran "
    "cerita dongeng υποκρίσου φαντάσου ρόλο παραμύθι уяви казк- вдавай تصور تظاهر نقش داستان قصة دور تظاهري تخيلي "
    "العب شخصية",
    "NOW": "now instead henceforth immediately first onwards actually rather jetzt stattdessen sofort zuerst maintenant "
    "désormais d'abord plutôt ahora primero invece ora subito agora теперь сейчас сначала вместо الآن today "
    "tonight asap straightaway promptly urgent- urgently subsequently afterwards thereafter next ab künftig "
    "fortan umgehend sogleich dringend nun dorénavant immédiatement aussitôt urgent urgence inmediatamente "
    "enseguida urgente adesso immediatamente imediatamente já depois немедленно срочно затем отныне впредь nu "
    "onmiddellijk meteen voortaan teraz natychmiast odtąd omedelbart genast nå straks nyní teď okamžitě acum "
    "imediat most azonnal nyt heti עכשיו מיד כעת अब तुरंत şimdi hemen artık bây giờ ngay sekarang segera mulai "
    "τώρα αμέσως зараз негайно тепер اکنون حالا فورا",
    "FREE": "unfiltered uncensored unrestricted restriction- limit limits limitation- ethic- unethical moral- amoral "
    "immoral illegal filter filters censor- refus- disclaimer- apolog- unhinged jailbreak- boundar- forbidden "
    "prohibited harmful inappropriate offensive freed bound evil toxic einschränkung- grenzen moralisch- límites "
    "sin_reglas ограничен- цензур- limiti limites swear- curses curse profan- openai unlimited unconstrained "
    "unbound unlocked unshackled liberat- freedom limitless rebel- rogue wild ruthless sarcastic vulgar nsfw "
    "explicit lawless unlawful criminal- dangerous malicious wicked anarch- taboo- warn- warning warnings "
    "caution- hesitat- comply complies censorship policy-free no-limits grenzenlos- unzensiert- ungefiltert- "
    "schranken- hemmung- verboten- unmoralisch- illegal- libre libres censure- filtre- interdit- immoral- tabou- "
    "illégal- éthique filtros prohibid- tabú- ilegal- ética- restriccion- limitaciones filtr- censur- vietat- "
    "etic- restrizion- libero censura proibid- livre restriç- запрет- запрещ- фильтр- незаконн- морал- этик- "
    "свободн- ongefilterd- beperking- verboden illegaal moreel ogranicze- cenzur- zakaz- nielegaln- etyk- "
    "begränsning- ocensurer- förbjud- olaglig- begrensning- usensurert omezen- zakázan- restricți- korlát- "
    "cenzúr- tiltott rajoitu- sensuur- הגבלות מגבלות צנזורה प्रतिबंध सीमा फ़िल्टर sınır- sansür- kısıtlama- "
    "yasak- batasan sensor larangan περιορισμ- λογοκρισ- обмежен- قيود رقابة ممنوع حدود محدودیت سانسور",
    "NO": "not never don't dont without no nothing none cannot can't won't nor nicht nie kein- ohne ne pas jamais sans "
    "nunca sin non senza mai não nao sem не никогда без لا بدون neither nobody nowhere hardly stop avoid refrain "
    "keinerlei niemals niemand nichts rien aucun- personne nada ningun- tampoco jamás niente nessun- nenhum- "
    "ninguém ничего нельзя нет niet geen nooit zonder niets bez nigdy żadn- inte inga utan aldrig ikke ingen uten "
    "aldri nikdy žádn- fără niciodată nem nélkül soha ei ilman älä לא בלי אל אין नहीं बिना मत değil olmadan asla "
    "hiçbir không đừng tidak jangan tanpa δεν μην χωρίς ніколи نه هیچ ليس دون أبدا",
    "AUTHORITY": "developer- admin- administrator- creator owner boss president manager ceo police supervisor god engineer "
    "programmer root sudo authorised authorized authoris- authoriz- employee officer government entwickler chef "
    "développeur desarrollador sviluppatore desenvolvedor разработчик администратор moderator- operator- "
    "maintainer- auditor- inspector- compliance staff support helpdesk it-support management headquarters "
    "security sysadmin superuser sudoer commander captain officer- general judge court fbi cia nsa agency "
    "minister- doctor professor founder- owner- author authors anthropic microsoft google meta nvidia leiter- "
    "vorgesetzt- betreiber- eigentümer- polizei behörde- prüfer- geschäftsführ- patron responsable- propriétaire "
    "administrateur- directeur directrice opérateur- jefe- dueñ- administrador- policía director- creador- "
    "operador- capo proprietari- amministrator- polizia direttor- creator- gestore chefe- dono- polícia diretor- "
    "criador- оператор- владел- начальник- директор- полици- администрац- создател- beheerder- baas ontwikkelaar- "
    "eigenaar- politie szef- właściciel- programist- policj- utvecklar- chef- polis ägare utvikler- sjef politi "
    "vývojář- správce šéf policie dezvoltator- șef- poliția fejlesztő- főnök- rendőrség kehittäjä- ylläpitäjä- "
    "מנהל משטרה डेवलपर प्रशासक मालिक पुलिस geliştirici- yönetici- pengembang atasan polisi προγραμματιστ- "
    "διαχειριστ- αστυνομία розробник- адмін- поліці- مدير المطور المسؤول الشرطة مدیر پلیس",
    "MODE": "mode override debug maintenance diagnostic- test check verification protocol reset system systems modus "
    "mode_ sistema système режим система modes activate- activat- enable- disable- unlock switch- boot- reboot- "
    "restart- initiali- initiat- initialise calibrat- privilege- elevated emergency admin-mode godmode shell "
    "console aktivier- deaktivier- wartung- notfall- modul neustart- diagnose- activé activée activez active "
    "désactive- redémarr- activa activad- desactiva mantenimiento emergencia reinicia- attiva- disattiva "
    "manutenzione emergenza riavvia ativad- ativar ative desative manutenção emergência reinici- активир- включ- "
    "отключ- перезагруз- обслуживани- отладк- systeem- geactiveerd activeer tryb- aktywuj aktywowan- systemow- "
    "läge aktiverat systemläge aktivert režim aktivuj aktivován mod activat üzemmód aktivál- tila käytössä מצב "
    "מערכת הפעל मोड सिस्टम सक्रिय modu etkin- sistem- aktifkan λειτουργία σύστημα ενεργοποί- режим- активован- "
    "وضع النظام تفعيل حالت سیستم فعال",
    "TOOL": "tool tools function functions call calls execute run invoke delete delet- api download lösche führe supprime "
    "borra elimina cancella apague удали выполни вызови plugin plugins endpoint webhook curl wget bash powershell "
    "terminal cli command-line browser browse navigate fetch fetches install installs launch launches trigger- "
    "invok- chmod rm grant- schedule- invite- book purchase buy approve- commit deploy- überweise- installier- "
    "lade herunter öffne starte ausführ- kaufe lösch- télécharge- installe- exécute- lance ouvre achète vire "
    "descarga- instala- ejecuta- abre compra paga scarica- installa esegui apri baixe instale abra compre pague "
    "скачай установи запусти открой купи оплати запуст- download- installeer open koop verwijder pobierz "
    "zainstaluj uruchom otwórz kup usuń installera kör öppna köp kjør åpne slett kjøp stáhni spusť otevři smaž "
    "descarcă rulează deschide cumpără șterge futtasd nyisd töröld lataa suorita avaa poista הורד פתח מחק קנה "
    "डाउनलोड चलाओ खोलो हटा indir çalıştır aç sil satın tải chạy mở xóa mua unduh jalankan buka hapus beli "
    "κατέβασε εκτέλεσε άνοιξε διάγραψε завантаж відкрий видали نفّذ شغّل احذف حمّل افتح اجرا حذف دانلود باز",
    "ANSWER": "answer- response- respond- reply replies summary summar- conclusion result- conclude antwort- réponse- "
    "respuesta- risposta resposta- ответ- الإجابة output- outputs verdict- rating- rate score- rank- feedback- "
    "evaluation- assess- translation- completion- message messages text-only zusammenfass- ergebnis- bewertung- "
    "bewerte fasse ausgabe résume résumez évaluation note conclusion- respuestas resumen evaluación califica "
    "conclusión risposte riassunto riassumi valutazione conclusione respostas resumo resuma avalia- conclusão "
    "резюме вывод- оценк- ответом antwoord- samenvatting vat beoordel- odpowied- podsumowan- ocen- svar- "
    "sammanfatt- betyg oppsummer- odpověd- shrnut- hodnocen- răspuns- rezumat válasz- összefoglal- vasta- "
    "tiivist- תשובה סיכום השב उत्तर जवाब सारांश cevap- yanıt- özet- jawab- ringkas- απάντη- περίληψη відповід- "
    "підсум- الرد الجواب الملخص پاسخ خلاصه",
    "DOCUMENT": "document- page webpage website resume résumé table text article content contents file files data review- "
    "function code email context dokument- seite tabelle texte tableau página tabla pagina tabella документ- "
    "страниц- таблиц- attachment- report reports notes listing reviews ticket- invoice- record- records database- "
    "spreadsheet- cv application profile readme comment comments description- html footer snippet passage "
    "paragraph abstract datei- datensatz bericht- notiz- rechnung- bewerbung- lebenslauf text- artikel nachricht- "
    "absatz fichier- base note- rapport- facture- annonce article- courriel archivo- informe- nota- factura- "
    "correo- mensaje- artículo párrafo fattura- rapporto nota annuncio messaggi- articolo paragrafo arquivo- "
    "relatório fatura- mensage- artigo currículo файл- письм- отчёт- счет замётк- статья стать- стр- bestand- "
    "factuur pagina- plik- raport- stron- notatk- artykuł- fil- sida- rapport fakt- soubor- strán- zpráv- fișier- "
    "pagin- raport fájl- oldal- tiedosto- sivu- asiakirja- מסמך דף קובץ दस्तावेज़ पेज फ़ाइल belge- sayfa- dosya- "
    "metin trang tệp dokumen halaman berkas έγγραφο σελίδα αρχείο сторінк- المستند الصفحة الملف النص سند صفحه "
    "فایل متن",
    "MUST": "must should need have shall required require- necessary obliged ought musst müssen sollst dois devez debes "
    "debe tienes devi deve deves должен должна нужно обязан يجب mandatory imperative- compulsory instructed "
    "commanded ordered obligat- verpflichte- müsst sollten unbedingt zwingend obligatoire- impérati- devras doit "
    "obligatori- debéis deberá imperativ- dovrai dovete bisogna obbligatori- precisa deverá obrigatóri- "
    "обязательно обязан- следует надо должны moet moeten dient verplicht musisz należy powinieneś obowiązkow- "
    "måste ska skall skal må muset musíš máš trebuie kell köteles täytyy pitää חייב עליך צריך चाहिए zorunda- "
    "gerek- lazım phải harus wajib πρέπει οφείλεις мусиш повинен необхідно باید لازم",
    "PLEASE": "please kindly bitte veuillez plaît favor prego пожалуйста pls plz alsjeblieft alstublieft proszę snälla "
    "vennligst prosím kérlek kérem בבקשה कृपया lütfen xin tolong mohon παρακαλώ رجاء لطفا svp s'il por per",
    "MONEY": "pay donate tip dollars euros money reward bribe charity tips payment payments payout bitcoin crypto wallet "
    "reward- prize- fee refund- gift bonus cash belohnung- geld trinkgeld zahl- argent prime récompense dinero "
    "propina recompensa soldi mancia premio dinheiro gorjeta деньги награ- чаев- beloning pieniądze nagrod- "
    "pengar belöning peníze odměn- bani recompensă pénz jutalom rahaa palkkio כסף פרס पैसे इनाम para ödül- tiền "
    "thưởng uang hadiah χρήματα αμοιβή гроші винагород-",
    "ASIDE": "anyway reminds way speaking oh besides meanwhile übrigens d'ailleurs apropos parlando кстати btw "
    "incidentally digress tangent remind reminded apart anyhow whilst nebenbei ansonsten zurück tiens sinon "
    "hablando cierto comunque aliás falando propósito overigens trouwens nawiasem forresten mimochodem apropo "
    "egyébként muuten אגב वैसे ngomong",
    "CLAIM": "compromised hacked best winner perfect stars positive excellent approve accept recommend recommend- praise "
    "promote admit- love visit click link top-rated outstanding flawless superior unbeatable guaranteed leading "
    "ideal hire hiring hired accept- acceptance endorse- favour five-star 5-star 10/10 highest best-in-class "
    "safest trustworthy legitimate scam breach- breached hijacked stolen suspended expired locked winner- "
    "congratulation- beste- hervorragend- ausgezeichnet- gehackt empfehl- empfiehl einstell- meilleur- excellent- "
    "piraté- recommande- embauche- parfait- mejor- excelente- hackead- recomiend- recomienda- contrata- perfect- "
    "migliore eccellente hackerat- consiglia- assumi perfett- melhor- excelente recomend- contrate лучш- отличн- "
    "взлом- рекоменд- beste uitstekend aanbevel- najleps- doskonał- zhakowan- polec- bästa utmärkt hackat "
    "rekommender- nejlepší vynikající doporuč- excelent legjobb kiváló ajánl- paras erinomainen suosittele הטוב "
    "מצוין המלץ सर्वश्रेष्ठ उत्कृष्ट सिफारिश mükemmel öner- terbaik sempurna rekomendasi καλύτερ- άριστ- найкращ- "
    "الأفضل ممتاز بهترین عالی",
    "TRUST": "trust friend friends colleague common practice safer safety honest everyone yesterday told promised agreed "
    "testing research study studies survey exercise purpose trustee believe promise promises assured assure "
    "guarantee- permission- permitted allowed consent approved agreement educational academic thesis journalist- "
    "student- scientific exam- verify- verified identity hilf help helping vertrau- versprich versproch- erlaub- "
    "einverstanden zugestimmt zweck- studie- umfrage übung confiance promis promesse autoris- permis permission "
    "étude- sondage exercice confía confianza promet- permiso estudio encuesta ejercicio fida- fiducia promess- "
    "permesso studio sondaggio esercizio confie confiança permissão estudo pesquisa exercício доверя- обеща- "
    "разреш- исследован- опрос- упражнен- vertrouw- beloof- toestemming onderzoek zaufaj obieca- zgod- badani- "
    "ankiet- lita lov- tillåtelse studie věř slíbil povolen- výzkum încredere bízz ígért engedély luota lupa סמוך "
    "הבטחת מותר भरोसा वादा अनुमति güven- izin- anket hứa percaya janji izin εμπιστεύσου υποσχέθηκες άδεια довіряй "
    "обіця- дозвол- اعتماد قول اجازه ثق وعد مسموح",
    "OBEY": "follow- obey- comply- adher- conform- heed- fulfil- fulfill- carry perform execute- abide satisfy befolg- "
    "gehorch- folge suis suivez suivre obéi- respecte exécute sigue seguir obedec- cumpl- segui obbedisci "
    "rispetta siga obedeça cumpra следуй следуйте выполни- подчиня- соблюда- соблюдай volg- gehoorzaam- wykonaj "
    "wykonuj przestrzegaj podążaj följ- lyd- utför følg- adlyd utfør následuj poslouchej splň dodržuj urmează "
    "ascultă kövesd engedelmeskedj noudata tottele ציית עקוב बतलाओ पालन itaat takip ikuti patuhi ακολούθησε "
    "υπάκουσε слідуй виконай- дотримуй- اتبع أطع نفذ پیروی اطاعت",
    "READ": "reading reads read summaris- summariz- process- parse- parses parsing crawl- crawler- scrap- index- ingest- "
    "analyz- analys- automated automatic- autonomous scanner- evaluator- lies lesen liest lest verarbeite- "
    "auswert- zusammenfassen lit lisez lire traite- traitant lea leen leyendo procesa- legge leggendo elabora lê "
    "lendo processa- читает читаешь читаете обрабатыва- leest verwerk- czyta- przetwarza- läser bearbetar "
    "behandler čte zpracováv- citește procesează olvas- feldolgoz- luet käsittel- קורא מעבד पढ़ okuyan okuyor "
    "işleyen đọc membaca memproses διαβάζ- επεξεργάζ- читаєш обробля- تقرأ يقرأ تعالج می‌خوانی پردازش",
    "HIDE": "secretly silently quietly discreetly covertly unnoticed hidden hide hides conceal- invisible mention- "
    "inform- notify notifies alert- aware notice acknowledge- heimlich verschweig- unbemerkt erwähn- verrate "
    "informier- stillschweigend secrètement discrètement mentionn- préviens avertis silencieusement secretamente "
    "mencion- informes avis- discretamente disimuladamente segretamente menzion- informare avvis- nascost- avise "
    "esconda escond- тайно скрытно незаметно упомина- сообщай скрой скрыва- stiekem heimelijk vermeld verzwijg "
    "potajemnie wspomina- ukryj poinformuj informuj hemlighet nämn dölj hemmelig nevn skjul tajně zmiňuj skryj "
    "neříkej menționa ascunde titokban említ- rejtsd salaa mainitse piilota בסתר תזכיר הסתר छिपा उल्लेख gizlice "
    "bahsetme sakla nhắc giấu diam-diam sembunyikan κρυφά αναφέρεις κρύψε таємно згадуй приховай سرا تذكر أخف "
    "مخفیانه",
    "MAKE": "writes compose- draft create- generat- produce- invent- craft design- develop- coding program- explain- "
    "describe- teach solve- calculat- comput- count sort- rank lists suggest- define- compare- outline schreibe "
    "verfass- erstell- erzeug- erfinde erklär- entwirf entwickle berechne löse rédige- compose créer crée génère "
    "invente explique- développe calcule résous redacta- compón crea- genera- inventa explica- desarrolla calcula "
    "resuelve componi genera spiega- sviluppa calcola risolvi redija componha crie gere explique desenvolva "
    "resolva сочини создай придумай объясни- составь реши рассчитай разработай verzin maak bereken schep stwórz "
    "wymyśl wyjaśnij oblicz ułóż skapa förklara beräkna uppfinn lag forklar beregn vytvoř vysvětli vymysli "
    "spočítej creează explică inventează írj magyarázd számold találj luo selitä laske keksi צור הסבר המצא חשב "
    "बनाओ समझाओ yarat oluştur açıkla- hesapla uydur tạo tính buatlah jelaskan hitung ciptakan φτιάξε εξήγησε "
    "υπολόγισε створи поясни обчисли اصنع اشرح أنشئ احسب بساز توضیح",
    "WHAT": "what what's whats who who's whom whose which where where's when how how's why was wer wem wessen welche- wo "
    "wann wie warum wieso quel quelle quels quelles qui quoi où quand pourquoi combien qué quién quiénes cuál "
    "cuáles dónde cuándo cómo cuánto cuántos chi cosa quale quali dove quando come perché quanto quem qual quais "
    "onde como что кто какой какая какие какое где когда как почему сколько wat welk- waar wanneer hoe waarom co "
    "kto jaki- jaka gdzie kiedy jak dlaczego ile vad vem vilk- var när hur varför hva hvem hvor når hvordan "
    "hvorfor kdo jaký jaká jaké kde kdy proč cine care unde când cum milyen hol mikor hogyan miért mikä kuka "
    "missä milloin miten miksi מה מי איפה מתי איך למה क्या कौन कहाँ कब कैसे क्यों kim nerede nasıl neden hangi gì "
    "đâu apa siapa kapan bagaimana mengapa τι ποιος ποια ποιο πού πότε πώς γιατί що хто який яка яке де коли чому "
    "ما أين متى كيف لماذا چه کی کجا چطور چرا",
    "REPORT": "research- attack- attacker- vulnerab- exploit- phishing inject- advisor- cve advisories paper papers "
    "articles benchmark- dataset- detect- classifier- mitigat- published publish report- reported reporter "
    "reportedly warned demonstrat- disclosed patched patch patches hacker- researchers example- e.g quoted "
    "according allegedly says said study's forscher- angriff- angreif- schwachstelle- sicherheitslück- beispiel- "
    "berichte- laut chercheur- attaque- attaquant- vulnérabilit- exemple- faille- selon investigador- ataque- "
    "atacante- vulnerabilidad- ejemplo- según fallo ricercator- attacc- vulnerabilità esempio- secondo falla "
    "pesquisador- vulnerabilidade- exemplo- segundo falha исследовател- атак- злоумышленник- уязвимост- пример- "
    "согласно сообщает onderzoeker- aanval- kwetsbaarhe- voorbeeld- volgens badacz- atak- podatnoś- przykład- "
    "według forskare- angrepp- sårbar- exempel enligt forsker- angrep- eksempel ifølge výzkumní- útok- "
    "zranitelnost- příklad- podle cercetător- atac- exemplu kutató- támadás- példa tutkija- hyökkäy- esimerk- "
    "חוקרים התקפה דוגמה लेख शोधकर्ता हमला उदाहरण araştırmacı- saldırı- örnek peneliti serangan contoh ερευνητ- "
    "επίθεση παράδειγμα дослідник- вразлив- приклад- باحث- هجوم ثغرة مثال محقق حمله مثلا",
    "LANG": "english german french spanish italian portuguese russian chinese japanese korean arabic dutch polish turkish "
    "hindi greek swedish deutsch englisch französisch spanisch anglais allemand français espagnol inglés alemán "
    "francés español inglese tedesco francese spagnolo inglês alemão francês espanhol английск- немецк- "
    "французск- испанск- русск- engels duits frans angielsk- niemieck- engelska tyska anglicky německy",
    "STOP": "stops halt pause quit end ends finish- finished terminate- cease- exit over stopp- beende- aufhör- hör "
    "schluss arrête- arrêtez cesse termine fin detén basta termina ferma- smetti fine pare fim стоп прекрати- "
    "остановись хватит закончи- конец einde przestań koniec zatrzymaj sluta stoppa slutt konec přestaň oprește "
    "állj lopeta עצור रुको बंद dur bitir dừng berhenti hentikan σταμάτα зупинись кінець توقف انتهى پایان",
    "GREET": "hello hi hey dear greetings attention hallo liebe- lieber achtung bonjour salut cher chère hola querid- "
    "atención ciao salve caro cara attenzione olá oi prezad- atenção привет здравствуй- внимание уважаем- hoi "
    "cześć witaj uwaga hej hei ahoj szia שלום नमस्ते merhaba dikkat halo perhatian γεια προσοχή привіт увага "
    "مرحبا انتباه سلام توجه",
}  # fmt: skip

_WIDE: Final[dict[str, str]] = {
    "DROP": "忽略 无视 忘记 忘掉 忽視 無視 不理 不要理会 忘れ 従わ 무시 잊어 따르지 抛开 撇开 取消 删掉 抛弃 舍弃 放棄 不必遵守 不用管 破棄 捨て 取り消 気にしない 버려 취소 신경 쓰지",
    "ORDERS": "指令 指示 规则 規則 提示 命令 要求 设定 ルール プロンプト 設定 지시 명령 지침 규칙 任务 タスク 约束 约定 規定 规定 方针 指引 任務 使命 ガイドライン 方針 制約 규정 원칙 임무 설정",
    "OLD": "之前 以上 先前 原来 以前 上記 これまで 前の 이전 위의 기존 此前 前面 上面 先前的 原先 旧的 いままで 今まで 先ほど 元の 従来 지금까지 앞의 앞선 원래",
    "ALL": "所有 全部 一切 すべて 全て 모든 모두",
    "MODEL": "人工智能 助手 模型 机器人 アシスタント 人工知能 モデル 어시스턴트 인공지능 모델 大模型 语言模型 聊天机器人 智能助理 言語モデル チャットボット 챗봇 언어",
    "USER": "用户 用戶 使用者 ユーザー 利用者 사용자 客户 顾客 読者 お客様 고객 이용자",
    "YOU": "你 您 あなた 君 당신 너는 너의",
    "ME": "我 私に 나에게 저에게",
    "SECRET": "密码 密碼 密钥 口令 机密 秘密 パスワード 暗証 鍵 비밀번호 암호 비밀 열쇠 账号 帐号 验证码 凭证 私钥 隐私 合言葉 認証 トークン 資格情報 機密 인증 토큰 기밀 자격",
    "PERSONAL": "生日 住址 地址 电话 余额 出生 誕生日 住所 電話 口座 残高 생일 주소 전화 잔액 身份证 银行卡 账户 工资 手机号 病历 氏名 生年月日 給料 カード番号 주민등록 계좌 급여 카드",
    "GIVE": "告诉 输出 显示 给我 说出 回答 写出 打印 透露 公开 教え 出力 表示 答え 言っ 書い 述べ 見せ 알려 출력 말해 보여 써 列出 展示 复述 重复 报告 读出 念出 泄露 披露 开头 列挙 繰り返 明かし "
    "述べて 話し 見せて 返信 공개 나열 반복 밝혀 적어",
    "SEND": "发送 发给 转发 发到 上传 转账 送信 送って 転送 送り 보내 전송 전달 提交 寄给 传给 分享给 投稿 アップロード 共有し 提出 업로드 제출 공유",
    "PLAY": "假装 扮演 想象 假设 世界 角色 ふり 演じ 想像 仮定 キャラ 척해 연기 상상 역할 虚构 故事 剧本 小说 游戏 演戏 物語 小説 ゲーム 芝居 설정극 소설 게임 이야기",
    "NOW": "现在 从现在 首先 立即 马上 而是 今から まず すぐ 代わりに 지금부터 먼저 즉시 대신 立刻 接下来 然后 今后 之后 即刻 ただちに 以後 次に 今後 当장 이제 앞으로",
    "FREE": "限制 审查 道德 拒绝 制限 検閲 倫理 拒否 제한 검열 윤리 거부 无限制 不受限制 禁止 违法 过滤 越狱 自由 無制限 違法 フィルター 自由に 무제한 금지 불법 필터",
    "NO": "不要 不得 没有 别 ないで しない なし 하지 없는",
    "MODE": "模式 系统 モード システム 모드 시스템",
    "MUST": "必须 应该 需要 なければ べき 必要 해야 务必 一定要 必需 不得不 必ず ねばなら しなさい 반드시 해야만",
    "TOOL": "删除 调用 执行 运行 工具 削除 実行 呼び出 삭제 실행 호출",
    "ANSWER": "回复 答案 总结 返答 回答 要約 답변 요약 摘要 结论 评分 结果 評価 結論 結果 평가 결론 결과",
    "DOCUMENT": "文档 网页 表格 简历 文件 文書 ページ 表 履歴書 문서 페이지",
    "PLEASE": "请 ください 주세요 주십시오 십시오",
    "OBEY": "遵循 遵守 服从 執行 听从 従って 従え 実行し 守って 守り 따르 복종 이행 수행",
    "READ": "阅读 读取 处理 分析 讀取 閱讀 読んで 読む 処理する 要約する 읽고 읽는 처리하는 요약하는",
    "HIDE": "告知 提及 透露给 偷偷 悄悄 隐瞒 隱瞞 秘密に 知らせ 黙って 触れない 몰래 숨기 언급하지 알리지",
    "MAKE": "写一 编写 創作 创作 生成 解释 解釋 说明 计算 设计 推荐 作って 書いて 説明し 作成 考えて 作る 만들어 작성 설명해 계산",
    "WHAT": "什么 什麼 谁 誰 哪 如何 怎么 怎麼 为什么 多少 何 どこ いつ どう なぜ どれ だれ 무엇 누가 누구 어디 언제 어떻게 왜",
    "REPORT": "研究人员 攻击 攻擊 漏洞 例如 示例 报道 研究 論文 论文 攻撃 脆弱性 研究者 例えば 報告 공격 취약점 연구 예를 보고",
    "STOP": "停止 结束 結束 终止 中止 終了 やめ 멈춰 중단 끝내",
    "GREET": "你好 您好 注意 尊敬 こんにちは 안녕 주의",
    "AUTHORITY": "管理员 开发者 老板 警察 主管 创造者 管理者 開発者 上司 社長 관리자 개발자 상사 경찰 사장",
    "TRUST": "相信 信任 测试 研究目的 同意 许可 信じ 許可 テスト 믿어 허락 시험 동의",
    "ENCODE": "翻译 诗 首字母 拼写 倒序 加密 解密 编码 藏头 翻訳 詩 逆順 暗号 頭文字 번역 거꾸로 암호화 첫 글자",
    "CLAIM": "最好 完美 最佳 优秀 最高 優秀 完璧 おすすめ 최고 완벽 추천",
    "YOUR": "你的 您的 あなたの 君の 당신의",
}  # fmt: skip

_WHOLE: Final[dict[str, str]] = {}
_STEMS: Final[dict[str, str]] = {}
for _name, _words in _LEXICON.items():
    for _word in _words.split():
        (_STEMS if _word.endswith("-") else _WHOLE).setdefault(_word.removesuffix("-"), _name)
_LENGTHS: Final = tuple(sorted({len(stem) for stem in _STEMS}, reverse=True))
_WIDE_WORDS: Final = {word: name for name, words in _WIDE.items() for word in words.split()}
_WIDE_PATTERN: Final = re.compile("|".join(sorted(map(re.escape, _WIDE_WORDS), key=lambda word: (-len(word), word))))
_MOST_REMEMBERED: Final = 50_000
_remembered: dict[str, str | None] = {}


def concept(word: str) -> str | None:
    """What a lower-case word means to an attack, if anything."""
    if word in _remembered:
        return _remembered[word]
    found = _WHOLE.get(word) or next((_STEMS[word[:n]] for n in _LENGTHS if word[:n] in _STEMS), None)
    if len(_remembered) < _MOST_REMEMBERED:  # bounded: the words come from strangers
        _remembered[word] = found
    return found


def concepts(words: Iterable[str], sentence: str) -> list[str]:
    """The meanings of a sentence in order. `words` are those with spaces between them."""
    found = [name for name in map(concept, words) if name is not None]
    if not sentence.isascii():
        found += [_WIDE_WORDS[match[0]] for match in _WIDE_PATTERN.finditer(sentence)]
    return found
